"""Completions of a real vLLM, for the tests beside it; runs under the engine's Python.

Reads one JSON object from standard input: `options`, a list of keyword arguments of vllm.LLM, one engine
after the other in this process; `prompts`; `tokens`, how many to add to each; `answers`, the file to write
to. The answers are, by engine and prompt, {"text", "tokens", "logits"}, with the logits of the whole
vocabulary for each token.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from vllm import LLM, SamplingParams


def answers(options: dict[str, Any], prompts: list[str], tokens: int) -> list[dict[str, Any]]:
    """Greedy completions of one engine, which is gone afterwards."""
    engine = LLM(logprobs_mode="raw_logits", max_logprobs=-1, **options)
    sampling = SamplingParams(temperature=0, max_tokens=tokens, logprobs=-1)
    outputs = [output.outputs[0] for output in engine.generate(prompts, sampling, use_tqdm=False)]
    engine.llm_engine.engine_core.shutdown()
    return [
        {
            "text": output.text,
            "tokens": list(output.token_ids),
            "logits": [[step[token].logprob for token in sorted(step)] for step in output.logprobs],
        }
        for output in outputs
    ]


if __name__ == "__main__":
    ask = json.load(sys.stdin)
    told = [answers(options, ask["prompts"], ask["tokens"]) for options in ask["options"]]
    Path(ask["answers"]).write_text(json.dumps(told), encoding="utf-8")
