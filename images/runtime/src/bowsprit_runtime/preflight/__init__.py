"""Proves, in the engine image and without a GPU, that plugins, architecture, arguments and model go together.

Foreign code runs here: a plugin may hang, exit, take all memory, or rewrite print and logging. So the judging
is done by a child process (judge.py) that tells what it finds, event by event, through a pipe; the parent
(supervise.py) watches time and memory and always has a report to write.
"""

from bowsprit_runtime.preflight.command import main

__all__ = ["main"]
