"""The Django project: settings, the ways in that are common to all, and the local stack."""

from reconcile.celery import app as celery_app

__all__ = ["celery_app"]
