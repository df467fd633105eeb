"""Django as a plain WSGI application, for `runserver`; gunicorn serves `reconcile.asgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reconcile.settings")

application = get_wsgi_application()
