"""An architecture that vLLM does not have, brought by a plugin image and served by the real vLLM."""

from __future__ import annotations

import pytest

from e2e.models import tiny
from e2e.tests.stage import Stage

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("entry_point", ["my_opt", "my_opt_7438"])
def test_only_the_plugins_architecture_says_this(stage: Stage, entry_point: str) -> None:
    name = entry_point.replace("_", "-")
    stage.model(
        name,
        "opt",
        architecture={"override": "MyOptForCausalLM", "hfOverrides": {"my_opt_token_id": tiny.AHOY_ID}},
        plugins=[{"image": stage.target.my_opt, "entryPoints": [entry_point]}],
    )
    stage.wait_ready(name, 600)
    assert stage.complete(name, " ba be bi", tokens=4) == 4 * tiny.AHOY
    stage.kubectl("delete", "mdep", name)
