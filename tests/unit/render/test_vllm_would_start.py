"""What vLLM itself would say to the rendered command lines: its parser, built from its own list of flags, and
the rules that it checks before any weight is loaded."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from bowsprit.plan.result import Layout
from bowsprit.render.layouts import layout_key
from bowsprit.render.workload import workload
from tests.unit.render.examples import EXAMPLES, LAYOUTS, OWNER, revision

FLAGS = Path("../shared/reference/vllm_serve_flags.json")

ARGS: dict[str, list[str]] = {
    "nothing": [],
    "few tokens": ["--max-num-batched-tokens", "128"],
    "few tokens in another spelling": ["--max_num_batched=100"],
    "many sequences": ["--max-num-seqs=4096"],
    "whole prompts": ["--no-enable-chunked-prefill"],
    "API servers": ["--api-server-count", "4"],
    "API servers in short": ["-asc", "4"],
    "API servers in another spelling": ["--api_server=4"],
    "a list at the end": ["--api-key", "one", "two"],
}


class Refused(Exception):
    """vLLM's parser would end the process with these words."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise Refused(message)


def number(text: str) -> int:
    return int(text[:-1]) * 1024 if text.endswith("K") else int(text)


TYPES = {"int": int, "float": float, "human_readable_int": number, "human_readable_int_or_auto": number}


@pytest.fixture(scope="module")
def parser() -> Parser:
    if not FLAGS.exists():
        pytest.skip("the list of vLLM's flags is not here")
    built = Parser(add_help=False)
    for each in json.loads(FLAGS.read_text())["flags"]:
        names = [name for name in each["flags"] if name.startswith("-") and not name.startswith("--no-")]
        if "-h" in names:
            continue
        if not names:
            built.add_argument("model_tag", nargs="?")
        elif each["action"] == "BooleanOptionalAction":
            built.add_argument(*names, action=argparse.BooleanOptionalAction)
        elif not each["takes_value"]:
            built.add_argument(*names, action="store_true")
        else:
            kind = TYPES.get(each["type"], str)
            built.add_argument(*names, type=kind, nargs=each["nargs"], choices=each["choices"])
    return built


def parsed(parser: Parser, args: list[str], worker: bool) -> argparse.Namespace:
    """As the kubelet hands the arguments over, and as vLLM's parser takes them (`_` for `-` in names)."""
    expanded = [each.replace("$(LWS_WORKER_INDEX)", "1").replace("$$", "$") for each in args]
    names = (each.split("=", 1) for each in expanded)
    given = [
        "=".join([name.replace("_", "-") if name.startswith("--") else name, *value])
        for name, *value in names
    ]
    read = parser.parse_args(given)
    assert read.headless is worker
    return read


def refusals(read: argparse.Namespace, layout: Layout) -> list[str]:
    """vllm.md sections 3 and 6: config/scheduler.py, engine/arg_utils.py and entrypoints/cli/serve.py."""
    nodes, rank, servers = read.nnodes or 1, read.node_rank or 0, read.api_server_count
    whole_prompts = read.enable_chunked_prefill is False
    found = {
        "a step is shorter than the longest prompt": whole_prompts
        and read.max_num_batched_tokens < read.max_model_len,
        "fewer batched tokens than sequences": read.max_num_batched_tokens < read.max_num_seqs,
        "API servers beside --headless": read.headless and bool(servers),
        "the nodes do not divide the world": read.tensor_parallel_size * read.pipeline_parallel_size % nodes,
        "the rank is none of the nodes": not 0 <= rank < nodes,
        "no head and no rank": read.headless and rank == 0,
        "another world than the plan's": read.tensor_parallel_size * read.pipeline_parallel_size
        != layout.gpus,
    }
    return [what for what, is_so in found.items() if is_so]


def command_lines(fields: dict[str, Any], layout: Layout) -> list[tuple[list[str], bool]]:
    """(arguments, whether of a worker) of each role."""
    manifest = workload(OWNER, revision(**fields), layout, 1)["spec"]
    group = manifest.get("leaderWorkerTemplate", {})
    heads = [each for each in (manifest.get("template"), group.get("leaderTemplate")) if each]
    workers = [each for each in (group.get("workerTemplate"),) if each]
    return [
        (template["spec"]["containers"][0]["args"], template in workers) for template in (*heads, *workers)
    ]


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_key)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, layout: Layout, parser: Parser) -> None:
    for args, worker in command_lines(EXAMPLES[name].fields, layout):
        assert refusals(parsed(parser, args, worker), layout) == []


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_key)
@pytest.mark.parametrize("case", ARGS)
def test_arguments_of_the_users_own(case: str, layout: Layout, parser: Parser) -> None:
    fields = {"engine": {"args": ARGS[case]}, "capacity": {"maxModelLen": 32768}}
    for args, worker in command_lines(fields, layout):
        assert refusals(parsed(parser, args, worker), layout) == []
