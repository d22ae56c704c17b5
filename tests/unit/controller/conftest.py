"""A stage for every test that wants one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.controller.stage import Stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    stage.node()
    yield stage
    stage.notes.let_go()
    await stage.loop.drain()
