"""Who acts when a command is run."""

import getpass

from operations.domain.audit import Actor, ActorKind


def command_actor(command: str) -> Actor:
    """A command, by whoever runs it on that machine."""
    return Actor(kind=ActorKind.COMMAND, id=command, name=f"{command} by {_user()}"[:255])


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "an unnamed user"
