"""Every flag that is rendered is one that vLLM knows by that name, and that users cannot set behind our
back."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from bowsprit.api.reserved import STREAMER
from bowsprit.plan.result import Layout
from bowsprit.render.workload import workload
from tests.unit.api.flags import owner_of
from tests.unit.render.examples import EXAMPLES, LAYOUTS, OWNER, revision

FLAGS = Path("../shared/reference/vllm_serve_flags.json")


READ = {"--max-num-batched-tokens", "--max-num-seqs"}
"""Rendered only where the user does not give them, and read by the planner where the user does."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_users_cannot_set_a_flag_that_is_rendered(name: str) -> None:
    users = EXAMPLES[name].fields.get("engine", {}).get("args", ())
    for layout in LAYOUTS:
        for args in arguments(name, layout):
            ours = {argument for argument in args if argument.startswith("--")} - {
                *users,
                *READ,
                *STREAMER.flags,
            }
            assert [flag for flag in ours if owner_of(flag) is None] == []


@pytest.mark.skipif(not FLAGS.exists(), reason="the list of vLLM's flags is not here")
@pytest.mark.parametrize("name", EXAMPLES)
def test_rendered_flags_are_vllm_flags_with_the_right_number_of_values(name: str) -> None:
    known = json.loads(FLAGS.read_text())["flags"]
    takes_value = {flag: each["takes_value"] for each in known for flag in each["flags"]}
    for layout in LAYOUTS:
        for args in arguments(name, layout):
            for argument, following in pairwise([*args, "--"]):
                if argument.startswith("--"):
                    flag, equals, _ = argument.partition("=")
                    assert flag in takes_value
                    assert takes_value[flag] is (bool(equals) or not following.startswith("--"))


def arguments(name: str, layout: Layout) -> list[list[str]]:
    """Of each role, after the model."""
    manifest = workload(OWNER, revision(**EXAMPLES[name].fields), layout, 1)["spec"]
    group = manifest.get("leaderWorkerTemplate", {})
    templates = (manifest.get("template"), group.get("leaderTemplate"), group.get("workerTemplate"))
    return [each["spec"]["containers"][0]["args"][1:] for each in templates if each]
