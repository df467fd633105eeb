"""What the endpoints under /v1 do, once authorization, faults and keys are dealt with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from . import params as forms
from . import shapes
from .answers import JsonObject, StripeError
from .assembly import Assembly
from .calls import Call
from .events import Cause, Event
from .ledger import Charge, Refund

Item = TypeVar("Item", Refund, Event)

UPDATE_PARAMS = {"metadata", "expand"}
EXPANDED = {
    "charges.retrieve": "charge",
    "payment_intents.retrieve": "payment_intent",
}


class Endpoints:
    """`check` before anything is executed, `write` for POSTs, `read` for GETs."""

    def __init__(self, parts: Assembly) -> None:
        self.parts = parts
        self.expander = shapes.Expander(parts.ledger)
        self._reads: dict[str, Callable[[Call], JsonObject]] = {
            "refunds.list": self._list_refunds,
            "refunds.retrieve": self._retrieve_refund,
            "charges.retrieve": self._retrieve_charge,
            "payment_intents.retrieve": self._retrieve_intent,
            "events.list": self._list_events,
            "events.retrieve": self._retrieve_event,
        }

    def check(self, call: Call) -> None:
        """Refuse parameters that Stripe refuses before it begins; nothing is saved then."""
        if call.endpoint == "refunds.create":
            forms.check_refund_create(call.params)
        else:
            known = UPDATE_PARAMS if call.endpoint == "refunds.update" else {"expand"}
            forms.refuse_unknown(call.params, known)
            forms.check_metadata(call.params.metadata)
        shapes.check_expand("refund", self._paths(call))

    def write(self, call: Call, status: str | None) -> JsonObject:
        """Carry out a POST; `status` is what a fault makes of a new refund."""
        ledger, events = self.parts.ledger, self.parts.events
        cause = Cause(call.request_id, call.key)
        if call.endpoint == "refunds.create":
            refund = self._create(call, status, cause)
        else:
            refund = ledger.refund(call.account, call.object_id, "id")
            if call.endpoint == "refunds.cancel":
                if refund.status != "requires_action":
                    raise StripeError(
                        400,
                        f"Refund {refund.id} is {refund.status}; "
                        "only one that requires action can be canceled.",
                        executed=True,
                    )
                previous = ledger.set_status(refund, "canceled", None)
            else:
                previous = ledger.set_metadata(refund, call.params.metadata)
            events.refund_changed(ledger.charges[refund.charge], refund, cause, previous)
        call.refund = refund.id
        return self.expander.expand(shapes.refund_object(refund), self._paths(call))

    def read(self, call: Call) -> JsonObject:
        """Carry out a GET."""
        endpoint, paths = call.endpoint or "", self._paths(call)
        if endpoint.startswith("events."):
            return self._reads[endpoint](call)
        shapes.check_expand(EXPANDED.get(endpoint, "refund"), paths)
        return self.expander.expand(self._reads[endpoint](call), paths)

    def _create(self, call: Call, status: str | None, cause: Cause) -> Refund:
        fields, parts = call.params.fields, self.parts
        charge = self._charge_named(call)
        if charge is None:
            raise forms.payment_missing()
        amount = int(fields["amount"]) if "amount" in fields else None
        refund = parts.ledger.create_refund(
            charge,
            amount=amount,
            reason=fields.get("reason"),
            metadata=call.params.metadata,
            status=status or parts.promises.new_status,
            listed=parts.promises.lists_all,
        )
        parts.events.refund_created(charge, refund, cause)
        return refund

    def _charge_named(self, call: Call) -> Charge | None:
        fields, ledger = call.params.fields, self.parts.ledger
        if fields.get("charge"):
            return ledger.charge(call.account, fields["charge"])
        if fields.get("payment_intent"):
            intent = fields["payment_intent"]
            return ledger.charge_of_intent(call.account, intent, "payment_intent")
        return None

    def _list_refunds(self, call: Call) -> JsonObject:
        parts = self.parts
        paging = forms.read_paging(call.params, forms.REFUND_LIST_PARAMS)
        charge = self._charge_named(call)
        lag_s = parts.faults.lag_s("refunds.list", call.target)
        youngest = parts.clock.now() - lag_s
        found = (
            parts.ledger.refunds_of(charge)
            if charge is not None
            else [r for r in parts.ledger.refunds.values() if r.account == call.account]
        )
        visible = [r for r in found if r.listed and (not lag_s or r.made <= youngest)]
        chosen = [r for r in visible if paging.covers(r.created)]
        cursor = paging.starting_after or paging.ending_before
        place = parts.ledger.refund(call.account, cursor, _cursor(paging)).seq if cursor else 0
        page, more = _page(chosen, paging, place)
        shape = [shapes.refund_object(refund) for refund in page]
        return shapes.list_object("/v1/refunds", shape, has_more=more)

    def _list_events(self, call: Call) -> JsonObject:
        paging = forms.read_paging(call.params, forms.EVENT_LIST_PARAMS)
        types = forms.read_event_types(call.params)
        events = self.parts.events
        lag_s = self.parts.faults.lag_s("events.list", call.target)
        youngest = self.parts.clock.now() - lag_s
        chosen = [
            event
            for event in events.of_account(call.account)
            if paging.covers(event.created)
            and (not types or _is_of(event.type, types))
            and (not lag_s or event.created <= youngest)
        ]
        cursor = paging.starting_after or paging.ending_before
        place = events.event(call.account, cursor).seq if cursor else 0
        page, more = _page(chosen, paging, place)
        return shapes.list_object("/v1/events", [event.body for event in page], has_more=more)

    def _retrieve_refund(self, call: Call) -> JsonObject:
        return shapes.refund_object(self.parts.ledger.refund(call.account, call.object_id, "id"))

    def _retrieve_charge(self, call: Call) -> JsonObject:
        return shapes.charge_object(self.parts.ledger.charge(call.account, call.object_id, "id"))

    def _retrieve_intent(self, call: Call) -> JsonObject:
        charge = self.parts.ledger.charge_of_intent(call.account, call.object_id, "intent")
        return shapes.payment_intent_object(charge)

    def _retrieve_event(self, call: Call) -> JsonObject:
        return self.parts.events.event(call.account, call.object_id).body

    def _paths(self, call: Call) -> Sequence[str]:
        return call.params.lists.get("expand", [])


def _is_of(kind: str, wanted: Sequence[str]) -> bool:
    return any(
        kind.startswith(name[:-1]) if name.endswith("*") else kind == name for name in wanted
    )


def _cursor(paging: forms.Paging) -> str:
    return "starting_after" if paging.starting_after else "ending_before"


def _page(
    oldest_first: Sequence[Item], paging: forms.Paging, place: int
) -> tuple[list[Item], bool]:
    """One page, newest first, and whether there is more beyond it. `place` is the cursor's."""
    if paging.ending_before:
        newer = [item for item in oldest_first if item.seq > place]
        return newer[: paging.limit][::-1], len(newer) > paging.limit
    older = [item for item in oldest_first if not paging.starting_after or item.seq < place]
    return older[::-1][: paging.limit], len(older) > paging.limit
