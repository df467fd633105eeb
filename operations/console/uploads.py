"""Files that people send: only from whom may send them, and only up to a size.

In production the bridge in front of Django asks the same before it keeps a large body. What it lets
through, small bodies and those of other servers are refused here before Django copies a byte.
"""

from collections.abc import Mapping
from typing import Any, cast

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.core.exceptions import PermissionDenied
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest

from operations.console.permissions import Act, ConsoleRequest
from operations.queries.access import read_rights

#: What a form holds beside its file, in bytes.
_BESIDE = 2**16


def may_upload(session_key: str) -> bool:
    """Whether this is the session of somebody who may send reports."""
    request = HttpRequest()
    request.session = SessionStore(session_key)
    return Act.DECIDE in read_rights(get_user(request)).anywhere


class GuardUploads(FileUploadHandler):
    """Stands before the handlers that keep a file. A view finds `upload_too_large` on the request.

    A body that is only a little too large is read to its end, so that the browser shows the answer.
    """

    def handle_raw_input(
        self,
        input_data: Any,
        META: Mapping[str, str],
        content_length: int,
        boundary: str,
        encoding: str | None = None,
    ) -> None:
        """Before a byte of the body is read."""
        self._length = content_length

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """The fields before the file have been read, nothing of it. Raises PermissionDenied."""
        super().new_file(*args, **kwargs)
        request = cast("ConsoleRequest", self.request)
        user = getattr(request, "user", None)
        if user is None or Act.DECIDE not in read_rights(user).anywhere:
            # The page that says so looks for a form's token too, and must not come here again.
            request._mark_post_parse_error()  # type: ignore[attr-defined]
            raise PermissionDenied
        most = settings.RECONCILE.report_max_mb * 2**20 + _BESIDE
        if self._length > most:
            request.upload_too_large = True  # type: ignore[attr-defined]
            raise StopUpload(connection_reset=self._length > 2 * most)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        """Hand it on."""
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """Keep nothing."""
