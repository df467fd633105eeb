"""How a fault is planted: a context in which one part of the product is replaced by a wrong one."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One wrong product. `plant` opens the context in which it is wrong."""

    name: str
    says: str
    plant: Callable[[], AbstractContextManager[None]]


PLANTED: list[Fault] = []


def planted(function: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
    """Register a fault; its docstring says what is wrong."""
    says = (function.__doc__ or "").strip()
    PLANTED.append(Fault(function.__name__, says, contextmanager(function)))
    return function
