"""What every test needs, wherever it lives: in tests, beside an image, or end to end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="session")
def current_event_loop() -> Iterator[None]:
    """looptime asks for the current loop in plain tests too; asyncio would make one that nobody closes."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
