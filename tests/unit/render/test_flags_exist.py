"""Every flag that is rendered is one that vLLM knows by that name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bowsprit.render.workload import workload
from tests.unit.render.examples import EXAMPLES, LAYOUTS, OWNER, revision

FLAGS = Path("../shared/reference/vllm_serve_flags.json")


@pytest.mark.skipif(not FLAGS.exists(), reason="the list of vLLM's flags is not here")
@pytest.mark.parametrize("name", EXAMPLES)
def test_rendered_flags_are_vllm_flags_with_the_right_number_of_values(name: str) -> None:
    takes_value = {
        flag: each["takes_value"] for each in json.loads(FLAGS.read_text())["flags"] for flag in each["flags"]
    }
    what = revision(**EXAMPLES[name].fields)
    for layout in LAYOUTS:
        manifest = workload(OWNER, what, layout, 1)["spec"]
        group = manifest.get("leaderWorkerTemplate", {})
        for template in filter(
            None, (manifest.get("template"), group.get("leaderTemplate"), group.get("workerTemplate"))
        ):
            _, *args = template["spec"]["containers"][0]["args"]
            for argument, following in zip(args, [*args[1:], "--"], strict=True):
                if argument.startswith("--"):
                    flag, equals, _ = argument.partition("=")
                    assert flag in takes_value
                    assert takes_value[flag] is (bool(equals) or not following.startswith("--"))
