"""`python3 /opt/bowsprit/runtime COMMAND …`: a folder that Python runs, with nothing to install first."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from bowsprit_runtime import engine_python

COMMANDS = ("install", "preflight", "launch", "ready", "verify", "alive", "drain", "leave")
IN_THE_ENGINE = ("install", "preflight", "launch")
"""Commands that need the Python which vLLM itself runs in."""


def main(arguments: list[str]) -> int:
    command = arguments[0] if arguments else ""
    if command not in COMMANDS:
        print(f"usage: python3 {sys.argv[0]} {{{'|'.join(COMMANDS)}}} …", file=sys.stderr)
        return 2
    if command in IN_THE_ENGINE:
        python = engine_python.elsewhere()
        if python:
            os.execv(python, [python, str(Path(__file__).parent), *arguments])
    return int(importlib.import_module(f"bowsprit_runtime.{command}").main(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
