"""How gunicorn serves: `gunicorn --config python:reconcile.gunicorn_conf reconcile.asgi`.

An agent's call may wait for the provider until its deadline. Threads make that waiting cheap, and
the time limits here leave such a call room to end and be written down.
"""

import os
import sys
from typing import Any

from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reconcile.settings")

try:
    from reconcile import settings
except ImproperlyConfigured as error:
    sys.exit(str(error))

_longest_call_s = int(
    settings.RECONCILE.call_deadline_s
    + settings.RECONCILE.connect_timeout_s
    + settings.RECONCILE.read_timeout_s
)

worker_class = "reconcile.worker.Worker"
workers = 2
# The code is read once and shared: a worker that comes back serves a second sooner, and each has
# 60 MB less of its own. Nothing is connected before the fork.
preload_app = True
timeout = _longest_call_s + 15
graceful_timeout = _longest_call_s + 5
keepalive = 5
max_requests_jitter = 0
control_socket_disable = True
logconfig_dict = settings.LOGGING


def post_fork(server: Any, worker: Any) -> None:
    """In the local stack a worker ends with its master, however that one ends."""
    from reconcile.local.tether import die_with_parent, is_tethered

    if is_tethered():
        die_with_parent()
