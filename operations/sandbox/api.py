"""Stripe's API as far as refunds need it: authorization, faults, idempotency, endpoints.

The order follows Stripe, "Idempotent requests" and "Rate limits": a rate limit comes before the
idempotency layer; a validation failure and a concurrent conflict are not saved; whatever an
endpoint answers once it has begun, a 500 too, is saved for the key.
"""

from __future__ import annotations

from .answers import Answer, StripeError, as_json, key_in_use, key_mismatch, unauthorized
from .assembly import Assembly
from .calls import Call, Reply, Wire
from .endpoints import Endpoints
from .faults import FRONT_ONLY, RESULT, STATUS, WIRE, Fault
from .idempotency import Found, SavedKey, check_length, fingerprint
from .sends import LOGGED_HEADERS

GONE = Reply(None, Wire.CLOSED)


class Api:
    """Replies to calls under /v1."""

    def __init__(self, parts: Assembly) -> None:
        self.parts = parts
        self.endpoints = Endpoints(parts)

    def reply(self, call: Call) -> Reply:
        """The reply to one call, with Stripe's headers; logs it if it is a send."""
        parts = self.parts
        send = None
        with parts.guard.changing():
            call.route(parts.ledger)
            if call.endpoint == "refunds.create":
                send = call.send(parts.clock.now(), LOGGED_HEADERS)
                parts.sends.arrived(send)
        try:
            reply = self._pass_layers(call)
        except StripeError as error:
            reply, call.code = Reply(error.answer()), error.code
        if send is not None:
            send.outcome, send.faults = call.outcome, call.faults
            send.code, send.refund = call.code, call.refund
            send.status = reply.answer.status if reply.answer else None
            send.ended = parts.clock.now()
            with parts.guard.changing():
                parts.sends.ended(send)
        return _with_headers(reply, call)

    def _pass_layers(self, call: Call) -> Reply:
        if not call.api_key.startswith(("sk_test_", "rk_test_")):
            call.outcome = "unauthorized"
            raise unauthorized(call.api_key)
        if call.endpoint is None:
            raise StripeError(404, f"Unrecognized request URL ({call.method}: {call.path}).")
        if call.method == "GET":
            return self._read(call)
        met = self._take(call, (*FRONT_ONLY, *WIRE), "before")
        if met is not None:
            call.outcome = "not_executed"
            early = self._meet(call, met, executed=False)
            if early is not None:
                return early
        answer = self._write(call)
        if call.outcome in ("executed", "replayed"):
            met = self._take(call, WIRE, "after")
            if met is not None:
                return self._meet(call, met, executed=True, true_answer=answer) or Reply(answer)
        return Reply(answer)

    def _read(self, call: Call) -> Reply:
        met = self._take(call, (*FRONT_ONLY, *WIRE, *RESULT, "slow"))
        if met is not None:
            early = self._meet(call, met, executed=False)
            if early is not None:
                return early
        with self.parts.guard.reading():
            return Reply(as_json(200, self.endpoints.read(call)))

    def _meet(
        self, call: Call, fault: Fault, *, executed: bool, true_answer: Answer | None = None
    ) -> Reply | None:
        """What a fault of the wire makes of the call; None if the call goes on as if unharmed."""
        match fault.kind:
            case "drop":
                return Reply(None, Wire.RESET if fault.reset else Wire.CLOSED)
            case "hang" | "slow":
                alive = self._hold(call, fault, executed=executed)
                if alive and (fault.kind == "slow" or fault.then == "answer"):
                    return None
                return Reply(None, Wire.RESET if fault.reset else Wire.CLOSED)
            case "truncate":
                return Reply(true_answer or fault.answer(), Wire.TRUNCATED)
            case _:
                return Reply(fault.answer())

    def _write(self, call: Call) -> Answer:
        """Pass the idempotency layer and execute, at most once for a key."""
        parts = self.parts
        key = call.key if parts.promises.takes_keys else None
        if key is not None:
            check_length(key)
        with parts.guard.changing():
            saved: SavedKey | None = None
            if key is not None:
                scope = (call.account, call.api_key, key)
                wanted = fingerprint(call.method, call.path, call.params)
                found, saved = parts.keys.find(scope, wanted)
                replay = self._replay(call, key, found, saved)
                if replay is not None:
                    return replay
            self.endpoints.check(call)
            if key is not None:
                saved = parts.keys.begin(scope, wanted, call.request_id)
            slow = self._take(call, ("slow",))
            if slow is None:
                return self._execute_and_save(call, saved)
        return self._execute_slowly(call, saved, slow)

    def _replay(self, call: Call, key: str, found: Found, saved: SavedKey | None) -> Answer | None:
        if found is Found.NOTHING or saved is None:
            return None
        if found is Found.OTHER_REQUEST:
            call.outcome = "key_mismatch"
            raise key_mismatch(key)
        if found is Found.IN_USE:
            call.outcome = "key_in_use"
            raise key_in_use(key)
        call.outcome = "replayed"
        return saved.answer()

    def _execute_slowly(self, call: Call, saved: SavedKey | None, slow: Fault) -> Answer:
        """Hold the call, before or after its effect, with its key in use meanwhile."""
        parts = self.parts
        executed = slow.when == "after"
        answer: Answer | None = None
        try:
            if executed:
                with parts.guard.changing():
                    answer = self._execute(call, saved)
            alive = self._hold(call, slow, executed=executed)
            if answer is None:
                if not alive:
                    call.outcome = "not_executed"
                    raise StripeError(503, "The sandbox is stopping.", kind="api_error")
                with parts.guard.changing():
                    answer = self._execute(call, saved)
            return answer
        finally:
            self._finish(saved)

    def _execute_and_save(self, call: Call, saved: SavedKey | None) -> Answer:
        try:
            return self._execute(call, saved)
        finally:
            self._finish(saved)

    def _execute(self, call: Call, saved: SavedKey | None) -> Answer:
        result = self._take(call, RESULT)
        status = self._take(call, STATUS)
        call.outcome = "executed"
        late_500 = result is not None and (result.kind, result.when) == ("500", "after")
        if result is not None and not late_500:
            answer, call.code = result.answer(), result.code
        else:
            try:
                answer = as_json(200, self.endpoints.write(call, status.kind if status else None))
            except StripeError as error:
                answer, call.code = error.answer(), error.code
            if result is not None:
                answer = result.answer()
        if saved is not None and (answer.status < 300 or self.parts.promises.saves_refusals):
            self.parts.keys.save(saved, answer)
        return answer

    def _finish(self, saved: SavedKey | None) -> None:
        if saved is not None:
            with self.parts.guard.changing():
                self.parts.keys.finish(saved)

    def _hold(self, call: Call, fault: Fault, *, executed: bool) -> bool:
        return self.parts.holds.hold(call.summary(), fault.duration_s, executed=executed)

    def _take(self, call: Call, kinds: tuple[str, ...], when: str | None = None) -> Fault | None:
        if call.endpoint is None:
            return None
        with self.parts.guard.reading():
            fault = self.parts.faults.take(call.endpoint, call.target, kinds, when)
        if fault is not None:
            call.faults.append(fault.label)
        return fault


def _with_headers(reply: Reply, call: Call) -> Reply:
    """Add what Stripe puts on every answer."""
    if reply.answer is None:
        return reply
    own = {"Request-Id": call.request_id}
    for name, header in (
        ("Stripe-Version", "stripe-version"),
        ("Stripe-Account", "stripe-account"),
        ("Idempotency-Key", "idempotency-key"),
    ):
        if header in call.headers:
            own[name] = call.headers[header]
    if call.outcome == "executed" and call.key is not None:
        own["Original-Request"] = call.request_id
    answer = reply.answer
    merged = Answer(answer.status, answer.body, own | answer.headers, answer.content_type)
    return Reply(merged, reply.wire)
