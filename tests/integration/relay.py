"""A relay in a process of its own, which may die in the middle of a delivery.

    python -m tests.integration.relay

Delivers what is due to receivers on this machine, once, and says how many tries it made.
"""

import django


def main() -> int:
    """One run."""
    django.setup()
    from dataclasses import replace

    from operations.domain.notices import NoticePolicy
    from operations.services.engine import default_engine
    from operations.services.notifying import deliver_due

    from .subscribed import LOOPBACK

    engine = replace(
        default_engine(), notices=NoticePolicy(allow_networks=LOOPBACK, timeout_s=20.0)
    )
    return deliver_due(engine=engine)


if __name__ == "__main__":
    print(main(), flush=True)
