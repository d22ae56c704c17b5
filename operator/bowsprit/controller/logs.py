"""Structured logs: one JSON object a line, or plain lines for a person at a terminal."""

from __future__ import annotations

import logging
import sys

import structlog


def configure() -> None:
    """Routes structlog and the standard library's loggers (kopf, aiohttp) into one stream, stderr."""
    people = sys.stderr.isatty()
    stamps: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if people else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*stamps, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=stamps,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # kopf tells of every event of every object; only its warnings are of use here.
    logging.getLogger("kopf").setLevel(logging.WARNING)
