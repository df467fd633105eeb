"""Every rule that the models give to the database is there, and is broken by a test beside this."""

import ast
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection, models

from operations.models.guards import Guard

#: What a test must break by name: the models' constraints, triggers and unique columns.
MODELS = list(apps.get_app_config("operations").get_models())


def _rules(model: type[models.Model]) -> list[str]:
    table = model._meta.db_table
    unique = [
        f"{table}_{field.column}_key"
        for field in model._meta.local_fields
        if field.unique and not field.primary_key
    ]
    triggers = [
        name
        for trigger in getattr(model._meta, "triggers", [])
        for name in (trigger.rules if isinstance(trigger, Guard) else [str(trigger.name)])
    ]
    return [*(rule.name for rule in model._meta.constraints), *triggers, *unique]


@cache
def _named_in_tests() -> set[str]:
    """All texts written out in the modules beside this one."""
    here = Path(__file__)
    return {
        node.value
        for path in here.parent.glob("test_invariants_*.py")
        if path != here
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


RULES = [rule for model in MODELS for rule in _rules(model)]


def test_the_models_have_rules() -> None:
    assert len(RULES) > 60
    assert len(RULES) == len(set(RULES))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_broken_by_a_test(rule: str) -> None:
    assert rule in _named_in_tests(), f"Write a test that breaks {rule} with plain SQL."


@pytest.mark.django_db
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_table_has_the_rules_of_its_model(model: type[models.Model]) -> None:
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass"
            " UNION SELECT indexrelid::regclass::text FROM pg_index"
            " WHERE indrelid = %s::regclass AND indisunique"
            " UNION SELECT regexp_replace(tgname, '^pgtrigger_(.*)_[0-9a-f]{5}$', '\\1')"
            " FROM pg_trigger WHERE tgrelid = %s::regclass AND tgenabled = 'O'"
            " UNION SELECT (regexp_matches(prosrc, 'THEN (?:broken := )?''(\\w+)''', 'g'))[1]"
            " FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid"
            " WHERE tgrelid = %s::regclass AND tgenabled = 'O'",
            [table] * 4,
        )
        found = {name for (name,) in cursor.fetchall()}
    assert set(_rules(model)) <= found
