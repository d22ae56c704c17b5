"""The command line that vLLM gets: overrides merged, and the group's layout where the arguments lack it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit_runtime.serve_arguments import (
    HF_OVERRIDES,
    OVERRIDE,
    head,
    is_headless,
    with_architecture_override,
    with_group,
)

FLAGS = Path(__file__).parents[4] / "shared" / "reference" / "vllm_serve_flags.json"

SPELLINGS: dict[str, list[str]] = {
    "in two words": ["--model-architecture-override", "MyOpt"],
    "in one": ["--model-architecture-override=MyOpt"],
    "with underscores": ["--model_architecture_override", "MyOpt"],
    "with underscores, in one": ["--model_architecture_override=MyOpt"],
    "its shortest beginning": ["--model-a", "MyOpt"],
    "another beginning": ["--model_arch=MyOpt"],
    "twice, and the last wins": ["--model-architecture-override", "Other", "--model-arch", "MyOpt"],
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_the_override_in_any_spelling_becomes_hf_overrides(case: str) -> None:
    given = ["model", *SPELLINGS[case], "--port", "8000"]
    assert with_architecture_override(given) == [
        *("model", "--port", "8000"),
        *("--hf-overrides", '{"architectures": ["MyOpt"]}'),
    ]


MERGED: dict[str, tuple[list[str], dict[str, object]]] = {
    "other overrides stay": (["--hf-overrides", '{"rope_theta": 1}'], {"rope_theta": 1}),
    "in any spelling": (['--hf_overrides={"rope_theta": 1}'], {"rope_theta": 1}),
    "of several the last counts": (["--hf-o", '{"a": 1}', "--hf-overrides", '{"b": 2}'], {"b": 2}),
    "the same architecture twice is no contradiction": (
        ["--hf-overrides", '{"architectures": ["MyOpt"]}'],
        {},
    ),
}


@pytest.mark.parametrize("case", MERGED)
def test_the_override_is_merged_with_what_is_there(case: str) -> None:
    given, kept = MERGED[case]
    *rest, flag, value = with_architecture_override(["model", *given, OVERRIDE, "MyOpt"])
    assert (rest, flag) == (["model"], HF_OVERRIDES)
    assert json.loads(value) == {**kept, "architectures": ["MyOpt"]}


REFUSED: dict[str, tuple[list[str], str]] = {
    "another architecture in the overrides": (
        [OVERRIDE, "MyOpt", "--hf-overrides", '{"architectures": ["Other"]}'],
        f'{OVERRIDE} MyOpt contradicts the architectures ["Other"] in {HF_OVERRIDES}: give one of the two',
    ),
    "no value": ([OVERRIDE], "--model-architecture-override needs a value"),
    "an empty value": ([f"{OVERRIDE}="], "--model-architecture-override needs a value"),
    "an option in place of the value": (
        [OVERRIDE, "--port", "1"],
        "--model-architecture-override needs a value",
    ),
    "overrides that are no object": (
        [OVERRIDE, "MyOpt", "--hf-overrides", "[1]"],
        "--hf-overrides [1] is no JSON object",
    ),
    "overrides that are no JSON": (
        [OVERRIDE, "MyOpt", "--hf-overrides", "{"],
        "--hf-overrides { is no JSON object",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    given, words = REFUSED[case]
    with pytest.raises(ValueError) as caught:
        with_architecture_override(["model", *given])
    assert str(caught.value) == words


@given(st.lists(st.sampled_from(["--port", "8000", "--hf-overrides", "{", "--model-impl=auto", "-tp", "2"])))
def test_without_the_override_nothing_is_touched(arguments: list[str]) -> None:
    assert with_architecture_override(arguments) == arguments


def test_no_option_of_vllm_is_taken_for_the_override_or_for_hf_overrides() -> None:
    if not FLAGS.exists():
        pytest.skip("../shared is not there")
    options = json.loads(FLAGS.read_text())["flags"]
    flags = [flag for option in options for flag in option["flags"] if flag.startswith("--")]
    taken = [flag for flag in flags if with_architecture_override([flag, "x"]) != [flag, "x"]]
    assert (len(flags) > 300, taken) == (True, [])
    others = [flag for flag in flags if flag != HF_OVERRIDES]
    for flag in others:
        assert with_architecture_override([OVERRIDE, "MyOpt", flag, "x"])[:2] == [flag, "x"]


WORKER = {"LWS_GROUP_SIZE": "3", "LWS_WORKER_INDEX": "2", "LWS_LEADER_ADDRESS": "m-0.m.ns"}
HEAD = {**WORKER, "LWS_WORKER_INDEX": "0"}

GROUPS: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "a pod alone": ({}, ["model"], ["model"]),
    "a group of one": ({**HEAD, "LWS_GROUP_SIZE": "1"}, ["model"], ["model"]),
    "the head": (
        HEAD,
        ["model"],
        ["model", "--nnodes", "3", "--node-rank", "0", "--master-addr", "m-0.m.ns"],
    ),
    "a worker has no server": (
        WORKER,
        ["model"],
        ["model", "--nnodes", "3", "--node-rank", "2", "--master-addr", "m-0.m.ns", "--headless"],
    ),
    "what the arguments say stays": (
        WORKER,
        ["model", "-n", "3", "--node_rank=2", "--master-addr", "other", "--headless"],
        ["model", "-n", "3", "--node_rank=2", "--master-addr", "other", "--headless"],
    ),
    "and only the rest is added": (
        WORKER,
        ["model", "--master-a", "other", "-r", "2"],
        ["model", "--master-a", "other", "-r", "2", "--nnodes", "3", "--headless"],
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_rank_world_and_head_come_from_leaderworkerset(case: str) -> None:
    environ, given, wanted = GROUPS[case]
    assert with_group(given, environ) == wanted


HEADS: dict[str, tuple[list[str], tuple[str, int] | None]] = {
    "no group": (["model"], None),
    "one node is no group": (["model", "--nnodes", "1", "--master-addr", "m"], None),
    "vLLM's default port": (["model", "--nnodes=2", "--master-addr", "m"], ("m", 29501)),
    "a port of its own": (["-n", "2", "--master-addr", "m", "--master_port=1234"], ("m", 1234)),
    "the last of two counts": (["--nnodes=2", "--master-addr", "a", "--master-addr=b"], ("b", 29501)),
}


@pytest.mark.parametrize("case", HEADS)
def test_where_the_ranks_meet(case: str) -> None:
    arguments, wanted = HEADS[case]
    assert head(arguments) == wanted


def test_a_rank_without_server() -> None:
    assert is_headless(with_group(["model"], WORKER))
    assert not is_headless(with_group(["model"], HEAD))
