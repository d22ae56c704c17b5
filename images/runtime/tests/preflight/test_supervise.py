"""The child ends, hangs, dies or takes all memory: there is always a report, and nothing is left."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight.events import Judged
from bowsprit_runtime.preflight.supervise import Limits, judge, memory_limit

TELL = """
import faulthandler, os, signal, sys, threading
faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)
from bowsprit_runtime.preflight.events import Teller
from bowsprit_runtime.report import Fault
tell = Teller(int(os.environ["BOWSPRIT_PREFLIGHT_EVENTS"]))
"""
LONG, HANGING = 60.0, 8.0
"""Seconds: more than any of these needs, and several times what Python needs to start."""


def judged(source: str, *, seconds: float = LONG, memory: int | None = None) -> Judged:
    src = next(path for path in sys.path if path.endswith("images/runtime/src"))
    return judge(
        [sys.executable, "-c", TELL + source], {"PYTHONPATH": src, "PATH": ""}, Limits(seconds, memory)
    )


def only(result: Judged) -> tuple[str, str, str]:
    (fault,) = result.report.faults
    return fault.reason, fault.blame, fault.message


def test_all_that_was_told_is_in_the_report() -> None:
    report = judged(
        "tell.engine(vllm='0.32.0'); tell.facts(a=1); tell.facts(b=2); tell.warn('w'); tell.warn('w')\n"
        "tell.plugins([{'name': 'p'}]); tell.fault(Fault('PluginRaised', 'plugin', 'm')); tell.done()"
    ).report
    assert (report.engine, report.facts, report.warnings) == ({"vllm": "0.32.0"}, {"a": 1, "b": 2}, ["w"])
    assert [fault.as_json() for fault in report.faults] == [
        {"reason": "PluginRaised", "blame": "plugin", "message": "m"}
    ]


def test_what_comes_after_the_end_is_not_waited_for() -> None:
    """A plugin's thread would keep the process."""
    assert judged("tell.done(); threading.Event().wait()").report.faults == []


STEP = "with tell.step('importing my-plugin', plugin='my-plugin'):\n    "
DIED = {
    "it exits": ("os._exit(0)", "ended with exit code 0"),
    "it raises SystemExit": ("sys.exit(3)", "ended with exit code 3"),
    "it is killed": ("os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL"),
    "it crashes": ("os.abort()", "ended by SIGABRT"),
}


@pytest.mark.parametrize("case", DIED)
def test_a_plugin_that_ends_the_process(case: str) -> None:
    source, how = DIED[case]
    reason, blame, message = only(judged(f"tell.facts(a=1)\n{STEP}{source}"))
    assert (reason, blame) == (reasons.PLUGIN_EXITED, "plugin")
    assert message.startswith(f"the process was {how} while importing my-plugin")


def test_its_last_words_are_told() -> None:
    assert "its last words: bye" in only(judged(f"{STEP}print('bye', flush=True); os._exit(1)"))[2]


def test_an_end_in_a_step_of_our_own_accuses_nobody() -> None:
    assert only(judged("os._exit(1)"))[:2] == (reasons.PREFLIGHT_CRASHED, "image")


def test_a_plugin_that_hangs_is_stopped_where_it_is() -> None:
    reason, blame, message = only(judged(f"{STEP}threading.Event().wait()", seconds=HANGING))
    assert (reason, blame) == (reasons.PLUGIN_TIMED_OUT, "plugin")
    assert "importing my-plugin took" in message


def test_a_hang_in_a_step_of_our_own_accuses_nobody() -> None:
    assert only(judged("threading.Event().wait()", seconds=HANGING))[0] == reasons.PREFLIGHT_TIMED_OUT


def test_memory_without_end_is_stopped_at_the_limit() -> None:
    source = f"kept = []\n{STEP}while True: kept.append(bytearray(b'x') * (1 << 20))"
    reason, blame, message = only(judged(source, memory=512 << 20))
    assert (reason, blame) == (reasons.PLUGIN_OUT_OF_MEMORY, "plugin")
    assert "GiB of the 0.5 GiB that the container may use" in message


def test_memory_of_a_process_that_the_plugin_starts_counts_too() -> None:
    inner = "kept = []\\nwhile True: kept.append(bytearray(b\\'x\\') * (1 << 20))"
    source = f"{STEP}import subprocess; subprocess.run([sys.executable, '-c', '{inner}'])"
    assert only(judged(source, memory=512 << 20))[0] == reasons.PLUGIN_OUT_OF_MEMORY


def test_what_the_plugin_started_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    inner = "import threading; threading.Event().wait()"
    source = (
        f"{STEP}import subprocess; left = subprocess.Popen([sys.executable, '-c', {inner!r}])\n"
        f"open({str(pid)!r}, 'w').write(str(left.pid)); tell.done()"
    )
    judged(source)
    while _runs(int(pid.read_text())):
        pass


def _runs(pid: int) -> bool:
    """A zombie, which nobody has asked for yet, does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        pytest.param(["1073741824"], 1 << 30, id="cgroup v2"),
        pytest.param(["max"], None, id="no limit of the container leaves the machine's"),
        pytest.param(["9223372036854771712"], None, id="nor does the largest number of cgroup v1"),
        pytest.param([], None, id="no cgroup"),
    ],
)
def test_the_memory_limit(files: list[str], limit: int | None, tmp_path: Path) -> None:
    paths = [tmp_path / str(index) for index in range(len(files))]
    for path, text in zip(paths, files, strict=True):
        path.write_text(f"{text}\n")
    assert memory_limit(paths) == (limit or memory_limit([]))
