"""dj-stripe as a site of its own: `peer_djstripe.py DATABASE_URL SECRET [deferred]` migrates and
prints the address of its webhook; gunicorn serves `peer_djstripe:application` with the same
words in PEER_URL, PEER_DEFERRED.

Runs in a venv that has dj-stripe, psycopg and gunicorn, and knows nothing of the product.
"""

import os
import sys
from urllib.parse import parse_qs, urlsplit

if __name__ == "__main__":
    os.environ["PEER_URL"] = sys.argv[1]

import django
from django.conf import settings
from django.urls import include, path

_url = urlsplit(os.environ["PEER_URL"])
_host = parse_qs(_url.query).get("host", [_url.hostname or ""])[0]


# Of the form that it demands. Its database says whose it is, so that nothing is asked of Stripe.
_KEY = "sk_test_" + "bench" * 8


def deferred(event, **kwargs):  # type: ignore[no-untyped-def]
    """The least that a callback that hands the event to a queue can do: nothing."""


settings.configure(
    SECRET_KEY="bench",  # noqa: S106
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": _url.path.lstrip("/"),
            "USER": _url.username or "",
            "PASSWORD": _url.password or "",
            "HOST": _host,
            "PORT": _url.port or "",
            "CONN_MAX_AGE": 600,
        }
    },
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "djstripe",
    ],
    DJSTRIPE_FOREIGN_KEY_TO_FIELD="id",
    STRIPE_LIVE_MODE=False,
    STRIPE_TEST_SECRET_KEY=_KEY,
    LOGGING_CONFIG=None,
    **({"DJSTRIPE_WEBHOOK_EVENT_CALLBACK": deferred} if os.environ.get("PEER_DEFERRED") else {}),
)
django.setup()
urlpatterns = [path("stripe/", include("djstripe.urls", namespace="djstripe"))]

if __name__ == "__main__":
    from django.core.management import call_command
    from djstripe.models import Account, APIKey, WebhookEndpoint

    call_command("migrate", verbosity=0)
    owner, _ = Account.objects.get_or_create(id="acct_bench", livemode=False)
    APIKey.objects.get_or_create(
        secret=_KEY,
        defaults={"type": "secret", "livemode": False, "djstripe_owner_account": owner},
    )
    endpoint, _ = WebhookEndpoint.objects.get_or_create(
        id="we_bench",
        defaults={
            "secret": sys.argv[2],
            "status": "enabled",
            "url": "http://127.0.0.1/",
            "enabled_events": ["*"],
            "livemode": False,
        },
    )
    sys.stdout.write(f"/stripe/webhook/{endpoint.djstripe_uuid}/\n")
else:
    from django.core.wsgi import get_wsgi_application

    application = get_wsgi_application()
