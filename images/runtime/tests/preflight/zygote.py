"""Runs under the Python of an engine: imports vLLM once, then judges each request in a fork of its own.

A request is a line of JSON on stdin, {"environ", "targets", "events", "output"}; the answer is the exit
status.
"""

from __future__ import annotations

import json
import os
import sys
import traceback


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from bowsprit_runtime.preflight import engine, judge

    engine.load()
    engine.registry()
    import vllm.model_executor.model_loader.utils
    import vllm.model_executor.models.llama  # noqa: F401

    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _judge(judge, request)
        _, status = os.waitpid(child, 0)
        print(status, file=answers, flush=True)


def _judge(judge: object, request: dict[str, object]) -> None:
    output = os.open(str(request["output"]), os.O_WRONLY | os.O_CREAT, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(request["environ"])  # type: ignore[arg-type]
    sys.path[:0] = request["targets"]  # type: ignore[assignment]
    events = os.open(str(request["events"]), os.O_WRONLY | os.O_CREAT, 0o644)
    os.environ["BOWSPRIT_PREFLIGHT_EVENTS"] = str(events)
    try:
        judge.main()  # type: ignore[attr-defined]
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the test shows it
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main()
