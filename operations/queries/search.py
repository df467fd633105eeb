"""Search: from any id that people meet to the operations it belongs to."""

from collections.abc import Sequence
from urllib.parse import urlsplit
from uuid import UUID

from django.db import connection

from operations.domain.access import Accounts

#: More than this is not a search for an id.
MOST_HITS = 50


def clean_query(text: str) -> str:
    """What is searched for: the text without blanks, or the id at the end of a pasted address."""
    text = text.replace("\x00", "").strip()[:255]
    if text.startswith(("http://", "https://")):
        try:
            path = urlsplit(text).path
        except ValueError:
            return text
        parts = [part for part in path.split("/") if part]
        return parts[-1] if parts else ""
    return text


_ACCOUNTS = "(SELECT id FROM operations_account)"
#: Each look-up by one id, with its own index.
_BY_ORDER = "SELECT id FROM operations_operation WHERE order_id = %(text)s"
_BY_KEY = "SELECT id FROM operations_operation WHERE idempotency_key = %(text)s"
_BY_REFUND = """
SELECT id FROM operations_operation
    WHERE provider_object_id = %(text)s AND provider_object_id <> ''"""
_BY_SEEN_REFUND = f"""
SELECT operation_id FROM operations_providerrefund
    WHERE account_id IN {_ACCOUNTS} AND provider_object_id = %(text)s
    AND operation_id IS NOT NULL"""  # noqa: S608 - constants
_BY_CHARGE = f"""
SELECT o.id FROM operations_payment AS p JOIN operations_operation AS o ON o.payment_id = p.id
    WHERE p.account_id IN {_ACCOUNTS} AND p.charge = %(text)s"""  # noqa: S608 - constants
_BY_INTENT = f"""
SELECT o.id FROM operations_payment AS p JOIN operations_operation AS o ON o.payment_id = p.id
    WHERE p.account_id IN {_ACCOUNTS} AND p.payment_intent = %(text)s"""  # noqa: S608 - constants
_BY_CALL = """
SELECT operation_id FROM operations_request
    WHERE tool_call_id = %(text)s AND tool_call_id <> ''"""
_BY_RUN = """
SELECT operation_id FROM operations_request
    WHERE agent_run_id = %(text)s AND agent_run_id <> ''"""
_BY_REQUEST = """
SELECT operation_id FROM operations_attempt
    WHERE provider_request_id = %(text)s AND provider_request_id <> ''"""
_BY_EVENT = """
SELECT operation_id FROM operations_eventhandling
    WHERE provider_event_id = %(text)s AND operation_id IS NOT NULL"""
_BY_ID = "SELECT id FROM operations_operation WHERE id = %(uuid)s"
_BY_ATTEMPT = "SELECT operation_id FROM operations_attempt WHERE id = %(uuid)s"

_OF_ACCOUNTS = """
SELECT hit.id FROM ({part}) AS hit (id) JOIN operations_operation AS own ON own.id = hit.id
    WHERE own.account_id = ANY (%(accounts)s)"""

_ANY = (
    _BY_ORDER,
    _BY_KEY,
    _BY_REFUND,
    _BY_SEEN_REFUND,
    _BY_CHARGE,
    _BY_INTENT,
    _BY_CALL,
    _BY_RUN,
    _BY_REQUEST,
    _BY_EVENT,
)
#: Where an id that begins so is to be found. It may be somebody's order all the same.
_LIKELY: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("re_", "pyr_"), (_BY_REFUND, _BY_SEEN_REFUND, _BY_ORDER)),
    (("ch_", "py_"), (_BY_CHARGE, _BY_ORDER)),
    (("pi_",), (_BY_INTENT, _BY_ORDER)),
    (("evt_",), (_BY_EVENT, _BY_ORDER)),
    (("req_",), (_BY_REQUEST, _BY_ORDER)),
    (("toolu_", "call_"), (_BY_CALL, _BY_ORDER)),
    (("recon-",), (_BY_KEY, _BY_ORDER)),
)


def find(text: str, accounts: Accounts = None) -> list[UUID]:
    """The operations of these accounts with exactly this id in any role, up to 50.

    One query for an id that is where its beginning says; two when it is elsewhere or nowhere.
    """
    if not text:
        return []
    uuid = as_uuid(text)
    if uuid is not None:
        likely: tuple[str, ...] = (_BY_ID, _BY_ATTEMPT, _BY_ORDER)
    else:
        likely = next((where for starts, where in _LIKELY if text.startswith(starts)), _ANY)
    found = _look(likely, text, uuid, accounts)
    if not found and likely is not _ANY:
        found = _look(_ANY, text, uuid, accounts)
    return found


def _look(where: Sequence[str], text: str, uuid: UUID | None, accounts: Accounts) -> list[UUID]:
    if accounts is not None:
        where = [_OF_ACCOUNTS.replace("{part}", part) for part in where]
    union = " UNION ".join(f"({part} LIMIT {MOST_HITS})" for part in where)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT * FROM ({union}) AS every LIMIT {MOST_HITS}",  # noqa: S608 - constants
            {"text": text, "uuid": uuid, "accounts": sorted(accounts or ())},
        )
        return [found for (found,) in cursor.fetchall()]


def as_uuid(text: str) -> UUID | None:
    """The id that a text is, if it is one."""
    try:
        return UUID(text)
    except ValueError:
        return None
