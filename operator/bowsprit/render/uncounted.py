"""Engine arguments that change how much memory a model takes, in a way that planning cannot reckon.

Each is said plainly beside the plan, with what the user can do: what is not counted makes an engine fail
after it has loaded, for reasons that nobody would look for in the plan.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from bowsprit.render import engine_args

_SPECULATIVE = ("--speculative-config", "-sc", "--spec-method", "--spec-model", "--spec-tokens")
_WITHOUT_MODEL = frozenset({"ngram", "ngram_gpu", "suffix"})
"""Methods of speculative decoding that load nothing."""


def uncounted(args: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each such argument."""
    found = []
    if _drafts(args):
        found.append(
            "The draft model of speculative decoding is not counted: a higher spec.capacity.concurrency "
            "leaves room for it."
        )
    if engine_args.has_flag(args, "--quantization") or any(token.startswith("-q") for token in args):
        found.append(
            "Weights are counted as the checkpoint has them: --quantization, where it quantizes while "
            "loading, is not; set spec.parallelism to use fewer GPUs."
        )
    if engine_args.has_flag(args, "--hf-config-path"):
        found.append(
            "The plan is made for the config.json of spec.model.config; the engine reads the one in "
            "--hf-config-path: keep them equal."
        )
    if engine_args.switch_of(args, "--enable-eplb"):
        found.append(
            "Redundant experts (--eplb-config) are not counted: a higher spec.capacity.concurrency leaves "
            "room for them."
        )
    return tuple(found)


def _drafts(args: Sequence[str]) -> bool:
    """Speculative decoding, by a method that has weights or may have some."""
    if not any(engine_args.has_flag(args, flag) for flag in _SPECULATIVE):
        return False
    methods = {engine_args.value_of(args, "--spec-method"), *map(_method, _configs(args))}
    return not methods & _WITHOUT_MODEL


def _configs(args: Sequence[str]) -> list[str]:
    given = (engine_args.value_of(args, flag) for flag in ("--speculative-config", "-sc"))
    return [text for text in given if text]


def _method(config: str) -> str:
    """Of a JSON object, or of a part that is given by itself (`--speculative-config.method=ngram`)."""
    try:
        value = json.loads(config)
    except (ValueError, RecursionError):
        return config
    method = value.get("method") if isinstance(value, dict) else value
    return method if isinstance(method, str) else ""
