"""A report is never longer than the kubelet keeps, and what decides is the last to go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit_runtime import reasons
from bowsprit_runtime.report import LIMIT, Fault, Report, cut, encoded

TEXT = st.builds(lambda piece, count: piece * count, st.text(max_size=4), st.integers(0, 400))
FAULTS = st.builds(Fault, st.sampled_from(sorted(reasons.REASONS)), st.sampled_from(["plugin", "spec"]), TEXT)
PLUGIN = st.fixed_dictionaries(
    {
        "name": st.text(max_size=50),
        "architectures": st.builds(
            lambda name, count: [name] * count, st.text(max_size=9), st.integers(0, 400)
        ),
    }
)
REPORTS = st.builds(
    Report,
    faults=st.lists(FAULTS, max_size=6),
    warnings=st.lists(TEXT, max_size=6),
    plugins=st.lists(PLUGIN, max_size=6),
    facts=st.dictionaries(st.sampled_from(["config", "weights", "checkpoint", "architecture"]), TEXT),
)


@given(REPORTS)
def test_a_report_always_fits_and_keeps_its_verdict_and_first_reason(report: Report) -> None:
    line = encoded(report.as_json())
    told = json.loads(line)
    assert len(line) <= LIMIT
    assert told["verdict"] == report.verdict
    assert [fault["reason"] for fault in told["faults"][:1]] == [
        fault["reason"] for fault in report.as_json()["faults"][:1]
    ]


def test_a_report_that_fits_is_not_changed() -> None:
    report = Report(
        warnings=["a"], plugins=[{"name": "p", "architectures": ["A"]}], facts={"config": "x" * 3000}
    )
    assert json.loads(encoded(report.as_json())) == report.as_json()


def test_a_plugin_of_391_architectures_is_named_with_how_many_more_there_are() -> None:
    names = [f"Architecture{i}ForCausalLM" for i in range(391)]
    told = json.loads(encoded(Report(plugins=[{"name": "many", "architectures": names}]).as_json()))
    plugin = told["plugins"][0]
    assert len(plugin["architectures"]) + plugin["more"] == 391
    assert plugin["architectures"] == names[: len(plugin["architectures"])]


def test_facts_outlive_long_warnings() -> None:
    report = Report(warnings=["w" * 2000] * 5, facts={"config": "c" * 2000, "weights": {"1": 1}})
    assert json.loads(encoded(report.as_json()))["facts"] == report.facts


def test_of_facts_that_are_too_many_the_checkpoint_goes_first_and_config_last() -> None:
    facts = {"config": "c" * 2500, "weights": "w" * 900, "checkpoint": "k" * 900, "dtype": "bfloat16"}
    kept = json.loads(encoded(Report(facts=facts).as_json()))["facts"]
    assert kept.keys() == {"config", "weights", "dtype"}
    kept = json.loads(encoded(Report(facts={**facts, "config": "c" * 3500}).as_json()))["facts"]
    assert kept.keys() == {"config", "dtype"}


def test_a_cut_message_keeps_its_beginning_and_its_end() -> None:
    assert cut("matter " + "x" * 1000 + " cause", 60).startswith("matter ")
    assert cut("matter " + "x" * 1000 + " cause", 60).endswith(" cause")


@pytest.mark.parametrize(
    ("found", "verdict", "exit_code"),
    [
        pytest.param([], "Ok", 0, id="nothing found"),
        pytest.param([(reasons.NEEDS_GPU, "plugin")], "Unjudged", 0, id="what is not judged blocks nothing"),
        pytest.param([(reasons.PREFLIGHT_CRASHED, "image")], "Unjudged", 70, id="a crash is tried again"),
        pytest.param(
            [(reasons.PLUGIN_RAISED, "plugin"), (reasons.PREFLIGHT_TIMED_OUT, "image")],
            "Broken",
            1,
            id="what was found before a crash decides",
        ),
        pytest.param([(reasons.HUB_UNREACHABLE, "network")], "Broken", 75, id="the network is tried again"),
        pytest.param(
            [(reasons.HUB_UNREACHABLE, "network"), (reasons.ENTRY_POINT_MISSING, "spec")],
            "Broken", 1, id="a fault beside the network's is not",
        ),
        pytest.param(
            [(reasons.NEEDS_GPU, "plugin"), (reasons.BUILD_FAILED, "plugin")],
            "Broken", 1, id="broken outweighs what cannot be judged",
        ),
    ],
)  # fmt: skip
def test_verdict_and_exit_code(found: list[tuple[str, str]], verdict: str, exit_code: int) -> None:
    report = Report(faults=[Fault(reason, blame, "…") for reason, blame in found])
    assert (report.verdict, report.exit_code) == (verdict, exit_code)


def test_the_fault_that_decides_stands_first() -> None:
    report = Report(
        faults=[Fault(reasons.NEEDS_GPU, "plugin", ""), Fault(reasons.PLUGIN_RAISED, "plugin", "")]
    )
    told: dict[str, Any] = report.as_json()
    assert [fault["reason"] for fault in told["faults"]] == [reasons.PLUGIN_RAISED, reasons.NEEDS_GPU]


def test_every_reason_says_what_it_means_and_what_to_do() -> None:
    assert all(entry.meaning.endswith(".") and len(entry.cure) > 20 for entry in reasons.REASONS.values())
