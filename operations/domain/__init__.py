"""The rules of Reconcile: pure functions over frozen values, without Django, Celery or stripe."""
