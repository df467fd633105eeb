"""What a person may do where, from their groups and their grants."""

from operations.domain.access import ALL, NONE, ROLE_ACTS, Act, Role, rights_of, within


def test_a_role_everywhere_reaches_all_accounts_also_those_still_to_come() -> None:
    rights = rights_of([(None, "read"), (None, "decide")])

    assert rights.accounts(Act.READ) is None
    assert rights.at(99) == {Act.READ, Act.DECIDE}


def test_a_grant_reaches_its_account_and_no_other() -> None:
    rights = rights_of([(7, "read"), (7, "decide"), (8, "read")])

    assert rights.accounts(Act.READ) == frozenset([7, 8])
    assert rights.accounts(Act.DECIDE) == frozenset([7])
    assert rights.at(8) == {Act.READ}
    assert rights.at(9) == frozenset()
    assert rights.at(None) == frozenset()


def test_a_grant_adds_to_what_is_held_everywhere() -> None:
    rights = rights_of([(None, "read"), (7, "decide")])

    assert rights.accounts(Act.READ) is None
    assert rights.accounts(Act.DECIDE) == frozenset([7])
    assert rights.at(7) == {Act.READ, Act.DECIDE}
    assert rights.anywhere == {Act.READ, Act.DECIDE}


def test_a_permission_that_is_no_act_gives_nothing() -> None:
    assert rights_of([(None, "fly"), (3, "fly")]) == NONE


def test_only_who_is_trusted_with_more_than_deciding_needs_a_second_factor() -> None:
    needs = {
        role: rights_of((None, str(act)) for act in acts).need_second_factor
        for role, acts in ROLE_ACTS.items()
    }

    assert needs == {
        Role.VIEWER: False,
        Role.OPERATOR: False,
        Role.APPROVER: True,
        Role.ADMIN: True,
    }
    assert ALL.need_second_factor


def test_what_belongs_to_no_account_is_within_all_accounts_only() -> None:
    assert within(None, None)
    assert not within(frozenset([7]), None)
    assert within(frozenset([7]), 7)
    assert not within(frozenset(), 7)
