"""The API's description, with the problems that each route can answer with."""

from typing import Any

from ninja import NinjaAPI, Schema
from ninja.openapi.schema import OpenAPISchema

from operations.api.problems import PROBLEM_TYPE


class FieldProblem(Schema):
    """What is wrong with one field."""

    field: str
    message: str


class Problem(Schema):
    """Why nothing was done (RFC 9457). `code` is for programs; `errors` name fields."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    field: str = ""
    errors: list[FieldProblem] = []


_CONTENT = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def _problem(words: str, **headers: Any) -> dict[str, Any]:
    more = {"headers": headers} if headers else {}
    return {"description": words, "content": _CONTENT} | more


_LATER = {"description": "When to ask again, in seconds.", "schema": {"type": "integer"}}
_OF_ALL = {
    "401": _problem("No valid key"),
    "403": _problem("The key may not do this"),
    "503": _problem(
        "The store or the provider can't be reached; ask again", **{"Retry-After": _LATER}
    ),
}
_OF_AN_ID = {"404": _problem("There is nothing with this id")}
_OF_INPUT = {"422": _problem("A field can't be taken, and why")}
_OF_A_BODY = _OF_INPUT | {
    "400": _problem("The body is no JSON, or ended early"),
    "413": _problem("The body is too large"),
    "415": _problem("The body is not declared as JSON"),
}
#: For routes that can meet something that stands in their way.
CONFLICT = {"responses": {409: _problem("Something else is in the way, and what")}}


class DocumentedAPI(NinjaAPI):
    """Describes beside the answers what is answered when there is none."""

    def get_openapi_schema(self, **given: Any) -> OpenAPISchema:
        """The whole description."""
        schema = super().get_openapi_schema(**given)
        components = schema["components"]["schemas"]
        described = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        components |= described.pop("$defs") | {"Problem": described}
        for routes in schema["paths"].values():
            for route in routes.values():
                route["responses"] |= _problems_of(route)
        return schema


def _problems_of(route: dict[str, Any]) -> dict[str, Any]:
    places = {parameter["in"] for parameter in route["parameters"]}
    return (
        _OF_ALL
        | (_OF_AN_ID if "path" in places else {})
        | (_OF_INPUT if places - {"path"} else {})
        | (_OF_A_BODY if "requestBody" in route else {})
    )
