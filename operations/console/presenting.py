"""What the page of an operation shows, put together from what was read of it."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from operations.console.flagging import flags_of
from operations.domain.advice import advise, why_not_sent
from operations.domain.closure import is_closable, may_be_reopened
from operations.domain.conservation import out_of_operation
from operations.domain.contract import Contract, Page
from operations.domain.explain import explain
from operations.domain.money import Money
from operations.domain.refund_state import counts_as_refunded
from operations.domain.statuses import Attention, Status
from operations.models import Operation
from operations.models.audit import first_break
from operations.queries.absence import grade_of
from operations.queries.answers import customer_message_of
from operations.queries.dossier import (
    Dossier,
    Match,
    known_facts,
    nearest_match,
    provider_label,
    situation,
)
from operations.queries.figures import PaymentMoney, payment_money
from operations.queries.timeline import timeline
from operations.services.engine import Engine


class Bar(NamedTuple):
    """Where a bar begins and how wide it is, as SVG lengths; "" for no width."""

    x: str
    width: str


class NamedId(NamedTuple):
    """An id, what it is called, and its page at the provider ("" for none)."""

    label: str | Promise
    value: str
    page: str = ""


def operation_context(
    dossier: Dossier, *, engine: Engine, actor_id: str, tab: str = "timeline"
) -> dict[str, Any]:
    """Everything that the page of an operation shows."""
    now = engine.clock()
    operation = dossier.operation
    status = Status(operation.status)
    payment = payment_money(dossier)
    match = nearest_match(dossier)
    known = known_facts(dossier, now)
    contract = engine.provider(operation.account).contract
    return {
        "tab": tab,
        "dossier": dossier,
        "operation": operation,
        "provider": provider_label(operation.account.provider),
        "explanation": explain(known),
        "advice": advise(situation(dossier, now)),
        "not_sent": why_not_sent(known.unknown_reason, known.provider),
        "closable": is_closable(status),
        "reopenable": may_be_reopened(status, operation.failure_code),
        "note_token": uuid4(),
        "flags": flags_of(dossier),
        "events": timeline(dossier),
        "audit_break": first_break(dossier.audit),
        "match": match,
        "payment": payment,
        "money": _money(payment, match),
        "out": _out(dossier),
        "absence": grade_of(
            operation,
            dossier.lookups,
            conclusive_after_s=contract.lookup_conclusive_after_s,
        ),
        "bar": _window_bar(operation, now),
        "ids": _ids(dossier, contract),
        "customer_message": customer_message_of(operation),
        "sends_most": engine.budget.attempts_per_operation,
        "actor_id": actor_id,
    }


def _money(payment: PaymentMoney, match: Match | None) -> dict[str, Money | str]:
    amounts = {
        "captured": payment.captured,
        "refunded": payment.refunded,
        "known_to_us": payment.known_to_us,
        "exposure": payment.exposure,
        "at_most": payment.at_most,
        "untouched": payment.untouched,
        "zero": 0,
    }
    shown: dict[str, Money | str] = {
        name: payment.money(amount) for name, amount in amounts.items()
    }
    shown["known_width"] = payment.share(payment.refunded)
    shown["unknown_width"] = payment.share(payment.at_most - payment.refunded)
    if match is not None:
        shown["match"] = Money(match.refund.amount, match.refund.currency)
    return shown


def _out(dossier: Dossier) -> tuple[Money, Money]:
    """The least and the most of this operation's amount that may be out."""
    operation = dossier.operation
    interval = out_of_operation(
        status=Status(operation.status),
        amount=operation.amount,
        was_sent=operation.attempts_made > 0,
        is_contradicted=Attention.CONFLICT in operation.attention,
        has_refund=any(
            row.operation_id == operation.pk and counts_as_refunded(row.status)
            for row in dossier.refunds
        ),
    )
    return (
        Money(interval.least, operation.currency),
        Money(interval.most, operation.currency),
    )


def _window_bar(operation: Operation, now: datetime) -> Bar | None:
    """What is left of the key window, at the end of the bar; None when there is no window."""
    start, end = operation.first_sent_at, operation.key_window_closes_at
    if start is None or end is None or end <= start:
        return None
    left = min(1.0, max(0.0, (end - now) / (end - start)))
    return Bar(f"{100 * (1 - left):.1f}%", f"{100 * left:.1f}%" if left else "")


def _ids(dossier: Dossier, contract: Contract) -> list[NamedId]:
    operation = dossier.operation

    def at_the_provider(name: str | Promise, page: Page, object_id: str) -> NamedId:
        livemode = operation.account.livemode
        return NamedId(name, object_id, contract.page_of(page, object_id, livemode=livemode))

    requests = [row.provider_request_id for row in dossier.attempts if row.provider_request_id]
    calls = [row.tool_call_id for row in dossier.requests if row.tool_call_id]
    runs = dict.fromkeys(row.agent_run_id for row in dossier.requests if row.agent_run_id)
    every = [
        NamedId(_("Operation"), str(operation.pk)),
        NamedId(_("Order"), operation.order_id),
        at_the_provider(_("Refund"), Page.REFUND, operation.provider_object_id),
        at_the_provider(_("Charge"), Page.PAYMENT, operation.payment.charge),
        at_the_provider(_("Payment"), Page.PAYMENT, operation.payment.payment_intent),
        NamedId(_("Key"), operation.idempotency_key),
        NamedId(_("Last request"), requests[-1] if requests else ""),
        NamedId(_("Tool calls"), ", ".join(calls)),
        NamedId(_("Runs"), ", ".join(runs)),
    ]
    return [row for row in every if row.value]
