"""Where a process can die and where others can come in between: around every statement and commit.

The hooks sit on Django's connection, so that they reach whatever the services do with it, and
know nothing of the services themselves.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.db import connections


class Crash(BaseException):
    """The process is gone. Not an Exception, so that no handler of the product lives through it."""


def in_transaction() -> bool:
    """Whether the product has a transaction open."""
    return connections["default"].in_atomic_block


@contextmanager
def boundaries(*, reached: Callable[[str], None], idle: Callable[[], None]) -> Iterator[None]:
    """Call `reached` at every boundary, where it may raise Crash, and `idle` between transactions.

    A crash inside a transaction, or just before its commit, rolls it back.
    """
    connection = connections["default"]
    begin_or_end, commit = connection.set_autocommit, connection.commit

    def set_autocommit(autocommit: bool, *rest: Any, **options: Any) -> None:
        if not autocommit:
            idle()
            reached("before a transaction")
        begin_or_end(autocommit, *rest, **options)

    def commit_or_die() -> None:
        try:
            reached("before a commit")
        except Crash:
            connection.rollback()
            raise
        commit()
        reached("after a commit")

    def statement(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if not connection.in_atomic_block:
            idle()
        reached("before a statement")
        return execute(sql, params, many, context)

    with (
        patch.object(connection, "set_autocommit", set_autocommit),
        patch.object(connection, "commit", commit_or_die),
        connection.execute_wrapper(statement),
    ):
        yield
