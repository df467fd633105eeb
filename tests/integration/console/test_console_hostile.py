"""Addresses that nobody would type: each page answers them, and none with a fault."""

import os
import re
from collections import Counter
from itertools import cycle
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client

from operations import console
from operations.console.filters import QueueFilter
from tests.integration.routes import routes

from .scenes import Scenes, fresh

pytestmark = pytest.mark.django_db(transaction=True)

#: How often each page is asked for.
TURNS = int(os.environ.get("HOSTILE_TURNS", "1"))
VALUES = [
    *("\x00", "9" * 5_000, "9" * 19, "-1", "²", "٣", "1e400", "NaN", "'\"<b>{{", "\u202e\u2066x"),
    *("../../x", "a" * 3_000, "0001-01-01", "99999-99-99", "%%%s", "\ufffe", "1", "a", "7d"),
]


def parameters() -> set[str]:
    """Every name that a page reads from its address."""
    folder = Path(console.__file__).parent
    found = {
        name
        for path in folder.rglob("*.py")
        for name in re.findall(r'GET(?:\.get(?:list)?\(|\[)"([\w-]+)"', path.read_text())
    }
    return found | set(QueueFilter.base_filters)


def pages(operation: str) -> list[str]:
    """Every page that can be asked for, Django's admin included."""
    made_up = "00000000-0000-0000-0000-000000000001"
    found = [(name, path) for name, path, _ in routes() if "webhook" not in name]
    return [
        path.replace(made_up, operation) if "/operations/" in path else path for _, path in found
    ]


def test_no_value_in_an_address_breaks_a_page(scenes: Scenes) -> None:
    operation = scenes.unknown()
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root"))
    names = sorted(parameters())
    values = cycle(VALUES)
    answered = Counter[int]()
    broken = []
    for turn in range(TURNS):
        for path in pages(str(operation.pk)):
            # Another value for each name, and other pairs on each page and in each turn.
            query = "&".join(f"{name}={quote(next(values))}" for name in names)
            status = client.get(f"{path}?{query}").status_code
            answered[status] += 1
            if status >= 500:
                broken.append((turn, path, query))

    assert broken == []
    assert answered[200] > 20 * TURNS, answered


def fields() -> set[str]:
    """Every name that a form of the console has, or that a view reads from one."""
    folder = Path(console.__file__).parent
    text = "\n".join(path.read_text() for path in folder.rglob("*.py"))
    found = set(re.findall(r'POST(?:\.get(?:list)?\(|\[)"([\w-]+)"', text))
    return found | set(re.findall(r"^    (\w+) = forms\.\w+Field\(", text, re.MULTILINE))


def test_no_value_in_a_form_breaks_a_page_or_settles_anything(scenes: Scenes) -> None:
    operation = scenes.unknown(made=False)
    client = Client(raise_request_exception=False)
    user = User.objects.create_superuser("root")
    client.force_login(user)
    names = sorted(fields())
    values = cycle(VALUES)
    answered = Counter[int]()
    broken = []
    for turn in range(TURNS):
        for path in pages(str(operation.pk)):
            if "logout" in path:
                continue
            form = {name: next(values) for name in names}
            if turn % 2:
                # Far enough to be decided upon.
                form |= {"revision": str(fresh(operation).revision), "seen": "1.1"}
            status = client.post(
                path, urlencode(form), content_type="application/x-www-form-urlencoded"
            ).status_code
            answered[status] += 1
            if status >= 500:
                broken.append((turn, path, status, form))

    assert broken == []
    assert answered[422] + answered[400] + answered[409] > 5 * TURNS, answered
    assert fresh(operation).status == operation.status
