"""Ingesting: an authentic event is stored and acknowledged; what it means is a job's.

One statement stores any number of deliveries with what waits to be done about them, so that an
event that was acknowledged is there once and in the inbox, whoever dies after the commit.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from operations.domain.events import EventFacts, facts_to_json
from operations.domain.privacy import kept
from operations.models import statements
from operations.models.webhook_event import filed_at
from operations.providers.storable import storable
from operations.providers.stripe_events import (
    SignatureRefused,
    UnreadableEvent,
    event_facts,
    parse_json,
    verify_signature,
)
from operations.services.accounts import UnknownAccount, account_for
from operations.services.engine import Engine


class EventRefused(Exception):
    """The bytes are not proven to be the provider's, or are no event; nothing was stored."""


class EventAccountUnknown(Exception):
    """The address names an account that does not exist; nothing was stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One authentic delivery, ready to be stored. `payload` is JSON that PostgreSQL takes.

    `account` is the provider's id of the account it belongs to, "" for the default one.
    """

    endpoint_account: str
    account: str
    facts: EventFacts
    raw: bytes
    payload: str
    received_at: datetime

    @property
    def key(self) -> tuple[str, str]:
        """What makes two deliveries one event."""
        return self.facts.id, self.account


@transaction.atomic
def receive_event(*, engine: Engine, raw: bytes, signature: str, endpoint_account: str) -> bool:
    """Verify and store one delivery. True when the event is new, False for a repetition.

    `endpoint_account` is the account that the address names, "" for none. Raises EventRefused and
    EventAccountUnknown.
    """
    delivery = read_delivery(
        secrets=engine.webhook_secrets,
        now=engine.clock(),
        raw=raw,
        signature=signature,
        endpoint_account=endpoint_account,
    )
    if endpoint_account and not delivery.account:
        delivery = replace(delivery, account=named_account(engine, endpoint_account)[:64])
    rows = statements.run(STORE, columns_of([delivery]))
    return bool(rows[0][2])


def read_delivery(
    *,
    secrets: Iterable[str],
    now: datetime,
    raw: bytes,
    signature: str,
    endpoint_account: str,
) -> Delivery:
    """Verify a delivery and read what it says. Raises EventRefused."""
    try:
        verify_signature(raw=raw, header=signature, secrets=secrets, now=now.timestamp())
        body, payload, raw = _stored(raw, parse_json(raw))
    except (SignatureRefused, UnreadableEvent) as error:
        raise EventRefused(str(error)) from error
    return _delivery(body, payload, raw, now, endpoint_account=endpoint_account)


def read_fetched(event: Mapping[str, Any], *, account: str, now: datetime) -> Delivery | None:
    """An event of the provider's own list; None when it can't be read. `account`: whose list."""
    raw = json.dumps(event, separators=(",", ":")).encode()
    try:
        body, payload, raw = _stored(raw, parse_json(raw))
    except UnreadableEvent:
        return None
    found = _delivery(body, payload, raw, now, endpoint_account="")
    return found if found.account else replace(found, account=account[:64])


def _delivery(
    body: dict[str, Any], payload: str, raw: bytes, now: datetime, *, endpoint_account: str
) -> Delivery:
    facts = event_facts(body)
    return Delivery(
        endpoint_account=endpoint_account[:64],
        account=facts.account[:64],
        facts=facts,
        raw=raw,
        payload=payload,
        received_at=now,
    )


def named_account(engine: Engine, name: str) -> str:
    """The provider's id of the account that an address names. Raises EventAccountUnknown."""
    try:
        return account_for(engine=engine, name=name).provider_account
    except UnknownAccount:
        raise EventAccountUnknown(name) from None


def columns_of(deliveries: Sequence[Delivery]) -> list[Any]:
    """The values of `STORE`: one list for each of its columns. No event may be in it twice."""
    return [list(column) for column in zip(*map(_row, deliveries), strict=True)]


def _row(delivery: Delivery) -> tuple[Any, ...]:
    facts = delivery.facts
    created = _moment(facts.created)
    refund = facts.refunds[0] if len(facts.refunds) == 1 else None
    return (
        delivery.endpoint_account,
        delivery.account,
        facts.id,
        facts.type[:255],
        facts.livemode,
        created,
        filed_at(created),
        delivery.raw,
        delivery.payload,
        delivery.received_at,
        facts.relevant,
        refund.id if refund else "",
        json.dumps(facts_to_json(facts)),
    )


# Sorted, so that two processes that store the same events don't wait in a ring.
_STORE = """
WITH given AS (
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::bool[], $6::timestamptz[],
        $7::timestamptz[], $8::bytea[], $9::text[], $10::timestamptz[], $11::bool[],
        $12::text[], $13::text[]
    ) AS given (
        endpoint_account, event_account, event_id, event_type, livemode, provider_created_at,
        filed_at, raw, payload, received_at, relevant,
        refund_id, facts
    )
), stored AS (
    INSERT INTO operations_webhookevent AS kept
        (endpoint_account, event_account, event_id, event_type, livemode, provider_created_at,
         filed_at, raw, payload, received_at, last_received_at, deliveries, backfill)
    SELECT endpoint_account, event_account, event_id, event_type, livemode, provider_created_at,
         filed_at, raw, payload::jsonb, received_at, received_at, {deliveries}, {backfill}
    FROM given ORDER BY event_id, event_account
    ON CONFLICT (event_id, event_account, filed_at) {again}
    RETURNING id, event_id, event_account, filed_at,
        deliveries = CASE WHEN backfill IS NULL THEN 1 ELSE 0 END AS is_new
), waiting AS (
    INSERT INTO operations_inboxitem
        (event_id, filed_at, provider_event_id, event_account, livemode, relevant,
         refund_id, facts, received_at, handle_after, attempts, failures, handling, error)
    SELECT stored.id, stored.filed_at, stored.event_id, stored.event_account, given.livemode,
         given.relevant, given.refund_id, given.facts::jsonb, given.received_at,
         given.received_at, 0, 0, '', ''
    FROM stored JOIN given USING (event_id, event_account)
    WHERE stored.is_new
)
SELECT event_id, event_account, is_new FROM stored
"""
#: Stores the deliveries of `columns_of`; answers (event id, account, is new) for each. A repeated
#: one is counted, also of an event that had been fetched before it was delivered.
STORE = _STORE.format(
    deliveries="1",
    backfill="NULL::bigint",
    again="""DO UPDATE
    SET deliveries = kept.deliveries + 1,
        last_received_at = greatest(kept.last_received_at, EXCLUDED.last_received_at)""",
)
#: Stores what was fetched and never delivered, by the run that is the last value; answers the same
#: for those that are new.
STORE_FETCHED = _STORE.format(deliveries="0", backfill="$14::bigint", again="DO NOTHING")


#: What may make JSON that Python reads one that PostgreSQL refuses: characters written out (NUL
#: and half pairs among them), other encodings, and numbers that are not finite or very large.
_SUSPECTS = (b"\\u", b"\x00", b"\xef\xbb\xbf", b"NaN", b"Infinity")
#: Only where a number can stand: in an id such letters are nothing odd.
_LARGE = re.compile(rb"[:,\[]\s*-?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]{3}")


def _stored(raw: bytes, body: dict[str, Any]) -> tuple[dict[str, Any], str, bytes]:
    """The parsed event, its text as jsonb can hold it, and its durable copy.

    Most are stored as they came. Of one that says something private all but that is stored: its
    copy is then the same event written anew.
    """
    try:
        is_suspect = _is_suspect(raw)
        if is_suspect:
            body = dict(storable(body))
        shown = kept(body)
        if shown is body:
            return body, json.dumps(body) if is_suspect else raw.decode(), raw
        payload = json.dumps(shown)
        return body, payload, payload.encode()
    except UnicodeDecodeError:
        raise UnreadableEvent("The body is not JSON in UTF-8.") from None
    except RecursionError:
        raise UnreadableEvent("The body is nested too deep.") from None


def _is_suspect(raw: bytes) -> bool:
    for found in _SUSPECTS:
        if found in raw:
            return True
    return _LARGE.search(raw) is not None


def _moment(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
