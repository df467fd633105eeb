"""The keys of the console, as its help shows them. `static/console.js` gives them their effect."""

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Key(NamedTuple):
    """`presses`: what is pressed, one after the other when there are several in one."""

    presses: tuple[str, ...]
    effect: str | Promise


class Group(NamedTuple):
    """Keys that work in one place."""

    place: str | Promise
    keys: tuple[Key, ...]


KEYS: tuple[Group, ...] = (
    Group(
        _("Everywhere"),
        (
            Key(("/",), _("Find by any id")),
            Key(("?",), _("Show all keys")),
            Key(("g q",), _("Go to the queue")),
            Key(("g o",), _("Go to the orphans")),
            Key(("g i",), _("Go to the insights")),
            Key(("Esc",), _("Leave a field, close what is open, or cancel")),
        ),
    ),
    Group(
        _("In a list"),
        (
            Key(("j", "k"), _("Next row, previous row")),
            Key(("Enter", "o"), _("Open the row")),
            Key(("x",), _("Select the row")),
            Key(("Shift x",), _("Select all rows up to this one")),
        ),
    ),
    Group(
        _("On an operation"),
        (
            Key(("l",), _("Look up again: it only reads")),
            Key(("c",), _("Claim it")),
            Key(("s",), _("Open the decision page with Succeeded")),
            Key(("f",), _("Open the decision page with Failed")),
            Key(("n",), _("Write a note")),
            Key(("u",), _("Back to the queue")),
        ),
    ),
)
