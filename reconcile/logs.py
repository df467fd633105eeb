"""Logging: JSON lines for machines, or short readable lines on a developer's terminal."""

from typing import Any

import structlog
from structlog.typing import Processor

_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
)


def configure_structlog() -> None:
    """Send structlog's own loggers through the standard library's handlers."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_config(*, readable: bool, level: str) -> dict[str, Any]:
    """Make the `LOGGING` setting; everything goes to standard error."""
    last: list[Processor] = (
        [
            structlog.dev.ConsoleRenderer(
                colors=False,
                pad_event_to=0,
                # The prettier ones print local variables, and with them secrets.
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
        if readable
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": list(_SHARED),
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *last,
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django's defaults would print a second, unstructured line.
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            # A forged Host header is the sender's fault; its 400 needs no traceback.
            "django.security.DisallowedHost": {"handlers": [], "level": "CRITICAL"},
            "django.server": {"handlers": [], "level": "INFO", "propagate": True},
            "gunicorn.error": {"handlers": [], "level": "INFO", "propagate": True},
            # The SDK logs every request at INFO; attempts are in the database.
            "stripe": {"handlers": [], "level": "WARNING", "propagate": True},
        },
    }
