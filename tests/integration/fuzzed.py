"""The API as its own description says it is, met with what nobody would send.

Cases are drawn from the description that the server gives, half of them against it, and each answer
is held against it: its status, its type, its fields. `make fuzz` draws more of them.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import schemathesis
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as how
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

#: How many cases a route gets.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "4"))
_CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    ignored_auth,
]


def operations() -> Iterator[Any]:
    """Every route of the description."""
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())
    found: Iterator[Any] = schema.get_all_operations()
    for operation in found:
        yield operation.ok()


def fuzz(operation: Any, *, key: str, known: Mapping[str, str], payment: str) -> dict[int, int]:
    """Draw cases for a route and judge every answer; how often each status came.

    `known`: ids that lead somewhere, by the name of their place in an address. `payment`: one that
    can be refunded.
    """
    counts: dict[int, int] = {}
    ours = {name: value for name, value in known.items() if f"{{{name}}}" in operation.path}
    drawn = [operation.as_strategy(), operation.as_strategy(GenerationMode.NEGATIVE)]
    if ours:
        drawn += [operation.as_strategy(mode, path_parameters=ours) for mode in GenerationMode]

    @seed(4417)
    @how(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(drawn), st.booleans())
    def answers(case: Any, with_payment: bool) -> None:
        if with_payment and isinstance(case.body, dict):
            _lead_to(case.body, payment)
        response = case.call(headers={"Authorization": f"Bearer {key}"})
        counts[response.status_code] = counts.get(response.status_code, 0) + 1
        case.validate_response(response, checks=_CHECKS, headers={"Authorization": f"Bearer {key}"})

    assert settings.RECONCILE.stripe_api_base, "the provider is the sandbox of this test"
    answers()
    return counts


def _lead_to(body: dict[str, Any], payment: str) -> None:
    """Let a request get past the first looks: text that can be stored, money that is there."""
    for part in [body, *(body["refunds"] if isinstance(body.get("refunds"), list) else [])]:
        if not isinstance(part, dict):
            continue
        for name, value in part.items():
            if isinstance(value, str) and name != "address":
                part[name] = "".join(filter(str.isprintable, value)) or value
        if "payment" in part:
            part["payment"] = payment
        if isinstance(part.get("amount"), int):
            part["amount"] = 1 + part["amount"] % 20
    body |= {name: value for name, value in _LED.items() if isinstance(body.get(name), str)}


_LED = {"currency": "usd", "account": ""}
