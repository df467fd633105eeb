"""The local stack: embedded PostgreSQL and Valkey, and all of Reconcile's processes on one machine.

Nothing of this runs in production, where the database and the broker are given by address.
"""
