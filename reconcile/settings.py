"""Django's settings. Every deployment differs by environment variables only; README lists them."""

import os
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from kombu import Queue

from reconcile import config, databases, logs
from reconcile.environment import Environment
from reconcile.local import state
from reconcile.local.secrets import local_secret

BASE_DIR = Path(__file__).resolve().parent.parent

_env = Environment(os.environ)

# --- Reconcile -------------------------------------------------------------------------------

RECONCILE = config.read(os.environ, base_dir=BASE_DIR)
if not _env.text("STRIPE_API_KEY") and not _env.text("STRIPE_API_BASE"):
    RECONCILE = state.with_running_sandbox(RECONCILE)

# Set by `run_local` and by the tests, never in production: this process is reached over plain http
# on this machine, so cookies can't be limited to https, and static files are served uncollected.
INSECURE_LOCAL = _env.switch("RECONCILE_INSECURE_LOCAL")

# --- Django ----------------------------------------------------------------------------------

DEBUG = _env.switch("DJANGO_DEBUG")
PLAIN_HTTP = DEBUG or INSECURE_LOCAL

# A random key that is kept in the data folder suits one machine; several need one in common.
SECRET_KEY = _env.text("DJANGO_SECRET_KEY") or local_secret(RECONCILE.data_dir, "django-secret-key")
ALLOWED_HOSTS = list(_env.listed("DJANGO_ALLOWED_HOSTS", ("127.0.0.1", "localhost", "[::1]")))

ROOT_URLCONF = "reconcile.urls"
WSGI_APPLICATION = "reconcile.wsgi.application"

INSTALLED_APPS = [
    "operations.apps.OperationsConfig",
    "operations.apps.StaffSiteConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "csp",
    "django_filters",
    "django_htmx",
    "ninja",
    "pgtrigger",
    "template_partials",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "reconcile.middleware.HardenAnswers",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "reconcile.middleware.RefuseNulInAdmin",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "operations.console.sessions.EndSessions",
    "allauth.account.middleware.AccountMiddleware",
    "operations.console.preferences.UsePreferences",
    "reconcile.middleware.LimitForms",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

TEMPLATES = [
    {
        # template_partials wraps the loaders itself when it is installed as an app.
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "operations.console.preferences.preferences",
            ],
        },
    }
]

# The body of the largest thing that is sent to us, a webhook event, is far below this. Bytes.
# Forms have a lower limit (LimitForms), as have the bodies of the API.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20

# Reports are the only files that are uploaded. They go to disk, however small.
FILE_UPLOAD_HANDLERS = [
    "operations.console.uploads.GuardUploads",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]

# --- Database --------------------------------------------------------------------------------

DATABASES: dict[str, dict[str, Any]] = {
    "default": databases.default(url=_env.text("DATABASE_URL"), data_dir=RECONCILE.data_dir)
}
# The owner is only for `migrate`, which works under that name for a while. The web and the worker
# are better off without knowing it.
DATABASE_ROLE = DATABASES["default"].get("USER", "")
DATABASE_OWNER = databases.owner(_env.text("DATABASE_OWNER_URL"))
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Caches ----------------------------------------------------------------------------------

CACHES = {
    # What every process must see alike: how often somebody tried to sign in.
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "reconcile_cache",
        # Above it counters are dropped, whosever they are.
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    },
    # What each process may read for itself.
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}

# --- Languages and time ----------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
USE_I18N = True
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True

# --- People ----------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["operations.console.preferences.SignIn"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
SESSION_COOKIE_AGE = RECONCILE.sign_in.session_age_s
# People are made by administrators, and nothing is sent by mail.
ACCOUNT_ADAPTER = "operations.console.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_UNIQUE_EMAIL = False
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = RECONCILE.sign_in.reauthenticate_s
# Counted in the default cache, which all processes share. `ip`: from one address, which may be a
# whole office; `key`: for one name at one address and, as `login_failed_name`, from everywhere: ten
# times what one address can reach.
ACCOUNT_RATE_LIMITS = {
    "login": "120/m/ip",
    "login_failed": "30/m/ip,10/5m/key,40/h/key",
    "login_failed_name": "400/h/key",
    "reauthenticate": "10/m/user",
    "change_password": "5/m/user",
}
MFA_ADAPTER = "operations.console.adapters.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_TOTP_ISSUER = "Reconcile"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = PLAIN_HTTP
SOCIALACCOUNT_ADAPTER = "operations.console.adapters.SocialAdapter"
# The provider is shown on our own page, and begins with a POST.
SOCIALACCOUNT_LOGIN_ON_GET = False
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if RECONCILE.sign_in.oidc is not None:
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [RECONCILE.sign_in.oidc.app],
    }
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "operations.console.views.stale_form.stale_form"
# Else they would travel in a cookie of their own.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

# --- Transport and browser security ----------------------------------------------------------

SESSION_COOKIE_SECURE = not PLAIN_HTTP
CSRF_COOKIE_SECURE = not PLAIN_HTTP
# The prefix has browsers refuse a cookie that another host of the domain, or plain http, sets. They
# take such names over https only.
_COOKIE_PREFIX = "" if PLAIN_HTTP else "__Host-"
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}sessionid"
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}csrftoken"
SECURE_SSL_REDIRECT = not PLAIN_HTTP
# Probes and scrapers come over plain http from inside.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = 0 if PLAIN_HTTP else 31_536_000
# Whether the domain's other hosts have https, and whether it joins the browsers' preload lists,
# is not for one service on it to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

# --- Static files ----------------------------------------------------------------------------

STATIC_URL = "/static/"
STATICFILES_DIRS = [path for path in [BASE_DIR / "static"] if path.is_dir()]
STATIC_ROOT = None if PLAIN_HTTP else BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = PLAIN_HTTP
WHITENOISE_ALLOW_ALL_ORIGINS = False
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if PLAIN_HTTP
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- Celery ----------------------------------------------------------------------------------

_broker_url = _env.text("CELERY_BROKER_URL")
EMBEDDED_BROKER = not _broker_url
if EMBEDDED_BROKER:
    from reconcile.local.valkey import broker_url

    _broker_url = broker_url(RECONCILE.data_dir)
elif not _broker_url.startswith(("redis://", "rediss://", "redis+socket://", "memory://")):
    raise ImproperlyConfigured(
        "CELERY_BROKER_URL must be the address of a Valkey or Redis server (redis://…)."
    )

CELERY_BROKER_URL = _broker_url
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Publishing happens in web requests. A broker that is down must not hold them up: the sweep finds
# in the database what the lost message would have told.
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Longer than any task may run, so that no task is handed out twice while it runs. Seconds.
    "visibility_timeout": 1_800,
    "socket_connect_timeout": 2,
    # Longer than the second for which a worker waits in one read.
    "socket_timeout": 3,
    "socket_keepalive": True,
    # Connecting in order to publish is tried once more, then given up.
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.2,
    "interval_max": 0.2,
}
CELERY_TASK_PUBLISH_RETRY_POLICY = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.2,
    "interval_max": 0.2,
}
# A worker takes from both unless it is told otherwise (`-Q`). Receivers of notices may be slow.
CELERY_TASK_DEFAULT_QUEUE = "celery"
CELERY_TASK_QUEUES = [Queue("celery"), Queue("notices")]
CELERY_TASK_ROUTES = {"operations.jobs.deliver_notices": {"queue": "notices"}}
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_TIME_LIMIT = 900
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(RECONCILE.data_dir / "celerybeat-schedule")
CELERY_BEAT_SCHEDULE = {
    "sweep": {
        "task": "operations.jobs.sweep",
        "schedule": 5.0,
        # A sweep that waited this long is overtaken by the next one.
        "options": {"expires": 5.0},
    },
    # The outbox is read, not told of: nothing is published where operations settle.
    "deliver-notices": {
        "task": "operations.jobs.deliver_notices",
        "schedule": 1.0,
        "options": {"expires": 1.0},
    },
    "fetch_when_quiet": {
        "task": "operations.jobs.fetch_when_quiet",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "sum_up": {
        "task": "operations.jobs.sum_up",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "count_all_money": {
        "task": "operations.jobs.count_all_money",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    "tidy": {
        "task": "operations.jobs.tidy",
        "schedule": 3_600.0,
        "options": {"expires": 3_600.0},
    },
    # Makes a seal when the last one is old enough: that stands in the database, not with beat.
    "seal": {
        "task": "operations.jobs.seal",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
}

# --- Logging ---------------------------------------------------------------------------------

logs.configure_structlog()
LOGGING = logs.logging_config(readable=PLAIN_HTTP, level="INFO")
