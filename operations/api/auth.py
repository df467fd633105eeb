"""Who calls: a bearer key."""

from django.http import HttpRequest
from ninja.security import HttpBearer

from operations.models import ApiKey
from operations.services.engine import default_engine
from operations.services.keys import find_api_key


class ReadOnlyKey(Exception):
    """The key may read, and nothing else."""


class ApiKeyAuth(HttpBearer):
    """`Authorization: Bearer rck_…`"""

    openapi_description = "A key made with `manage.py create_api_key NAME`."

    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        """The key's row; None for one that is unknown, revoked or expired. Raises ReadOnlyKey."""
        if not token.isascii() or len(token) > 200:
            return None
        key = find_api_key(engine=default_engine(), secret=token)
        if key is not None and not key.may_write and request.method not in ("GET", "HEAD"):
            raise ReadOnlyKey
        return key
