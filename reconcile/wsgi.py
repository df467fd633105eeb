"""What gunicorn serves."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.core.wsgi import get_wsgi_application

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reconcile.settings")

#: How long a client may pause while it sends a request or takes its answer, in seconds. Without a
#: limit a few half-sent bodies would hold every thread.
_LONGEST_PAUSE_S = 10.0

_django = get_wsgi_application()


def application(environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
    """Django, with a limit on how long a client may keep a thread waiting."""
    connection = environ.get("gunicorn.socket")
    if connection is not None:
        connection.settimeout(_LONGEST_PAUSE_S)
    return _django(environ, start_response)
