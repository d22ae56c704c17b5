"""Reports come out of containers in which foreign code ran: what does not fit is none, and nothing raises."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.facts.config import MAX_BYTES, facts_from_config
from bowsprit.facts.model import FactsError, MeasuredWeights, ModelFacts
from bowsprit.facts.report import MAX_REPORT_CHARACTERS, Report, Verdict, parse_report
from bowsprit.facts.told import facts_from_told, with_told

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
FAULT = {"reason": "PluginImportFailed", "blame": "plugin", "message": "my_opt: No module named 'x'"}
WEIGHTS = {"layers": [[4, 1000]], "embedding": 10, "head": 20, "other": 5, "tied": False}


def packed(config: Any) -> str:
    return base64.b64encode(zlib.compress(json.dumps(config).encode())).decode()


def content(**fields: Any) -> dict[str, Any]:
    """A report of a model that is fine."""
    facts = {
        "architecture": "LlamaForCausalLM",
        "supportsPP": True,
        "maxModelLen": 4096,
        "dtype": "bfloat16",
        "quantization": None,
        "config": packed(CONFIG),
        "weights": {"1": WEIGHTS},
    }
    plugin = {
        "name": "my-opt",
        "version": "1.0",
        "entryPoints": ["my_opt"],
        "architectures": ["MyOpt"],
        "more": 0,
    }
    return {
        "v": 1,
        "verdict": "Ok",
        "faults": [],
        "warnings": [],
        "engine": {"vllm": "0.32.0", "python": "3.12.3", "torch": None},
        "plugins": [plugin],
        "facts": facts,
        **fields,
    }


def report(**fields: Any) -> Report:
    found = parse_report(json.dumps(content(**fields)))
    assert found is not None
    return found


def told(**fields: Any) -> Mapping[str, Any]:
    return report(**fields).facts


def facts(**changes: Any) -> ModelFacts | FactsError:
    return facts_from_told(told(facts={**content()["facts"], **changes}), {})


def test_a_report_is_read_whole() -> None:
    found = report(verdict="Broken", faults=[FAULT], warnings=["asks for torch<2"])
    assert (found.verdict, found.faults[0].reason, found.faults[0].blame) == (
        Verdict.BROKEN,
        "PluginImportFailed",
        "plugin",
    )
    assert found.warnings == ("asks for torch<2",)
    assert found.engine == {"vllm": "0.32.0", "python": "3.12.3"}
    (plugin,) = found.plugins
    assert (plugin.name, plugin.version, plugin.architectures) == ("my-opt", "1.0", ("MyOpt",))


NO_REPORTS: dict[str, str] = {
    "nothing": "",
    "the last lines of a log": "Traceback (most recent call last):\n  boom",
    "a report that was cut off": json.dumps(content())[:-20],
    "another version": json.dumps(content(v=2)),
    "a list": "[]",
    "nested without end": "[" * 100_000,
    "longer than any report": json.dumps(content(warnings=["x" * MAX_REPORT_CHARACTERS])),
    "an unknown verdict": json.dumps(content(verdict="Fine")),
    "a verdict that is a list": json.dumps(content(verdict=[])),
    "broken without a fault": json.dumps(content(verdict="Broken")),
    "fine with a fault": json.dumps(content(faults=[FAULT])),
    "a fault that is text": json.dumps(content(verdict="Broken", faults=["x"])),
    "a reason with spaces": json.dumps(content(verdict="Broken", faults=[{**FAULT, "reason": "no reason"}])),
    "a fault without a message": json.dumps(content(verdict="Broken", faults=[{**FAULT, "message": None}])),
    "more warnings than anybody reads": json.dumps(content(warnings=["x"] * 100)),
    "plugins that are numbers": json.dumps(content(plugins=[1])),
    "facts that are text": json.dumps(content(facts="x")),
}


@pytest.mark.parametrize("case", NO_REPORTS)
def test_no_report_is(case: str) -> None:
    assert parse_report(NO_REPORTS[case]) is None


@given(st.text())
def test_reading_never_fails(text: str) -> None:
    assert parse_report(text) is None


def test_texts_are_one_printable_line_of_bounded_length() -> None:
    hostile = "red\x1b[31m\nline\u202e" + "x" * 2000
    (fault,) = report(verdict="Broken", faults=[{**FAULT, "message": hostile}]).faults
    assert fault.message.startswith("red [31m line xxx")
    assert len(fault.message) <= 1000


@pytest.mark.parametrize(
    ("blames", "waits"),
    [(["network"], True), (["network", "network"], True), (["network", "plugin"], False), (["model"], False)],
)
def test_only_the_network_is_waited_for(blames: list[str], waits: bool) -> None:
    faults = [{**FAULT, "blame": blame} for blame in blames]
    assert report(verdict="Broken", faults=faults).waits_for_network is waits


def test_facts_are_those_of_the_config_with_what_the_engine_built() -> None:
    known = facts_from_config(json.dumps(CONFIG))
    found = facts()
    assert isinstance(known, ModelFacts)
    assert isinstance(found, ModelFacts)
    assert found.layers == known.layers
    assert found.measured == (MeasuredWeights(1, (1000,) * 4, 10, 20, 5, tied=False),)
    assert found.weight_bytes == 4035
    assert found.digest != known.digest


def test_the_same_report_is_the_same_facts_and_other_bytes_are_others() -> None:
    other = facts(weights={"1": {**WEIGHTS, "head": 21}})
    assert isinstance(other, ModelFacts)
    again = facts()
    assert again == facts()
    assert isinstance(again, ModelFacts)
    assert other.digest != again.digest


def test_overrides_count_as_they_do_for_a_users_config() -> None:
    found = facts_from_told(told(), {"num_hidden_layers": 2})
    assert isinstance(found, ModelFacts)
    assert len(found.layers) == 2
    assert found.measured == (), "vLLM built another model than this"


def test_what_the_engine_knows_better() -> None:
    found = facts(supportsPP=False, maxModelLen=2048)
    assert isinstance(found, ModelFacts)
    assert (found.stageable, found.max_model_len) == (False, 2048)


@pytest.mark.parametrize("stageable", [True, False])
@pytest.mark.parametrize("silence", [None, "yes"])
def test_where_the_engine_says_nothing_of_stages_the_family_decides(stageable: bool, silence: Any) -> None:
    known = facts_from_config(json.dumps(CONFIG))
    assert isinstance(known, ModelFacts)
    silent = told(facts={"supportsPP": silence, "maxModelLen": 2048})
    assert with_told(silent, replace(known, stageable=stageable)).stageable is stageable


def test_the_digest_is_of_what_was_told_so_an_operator_that_reckons_otherwise_rolls_nothing() -> None:
    known = facts_from_config(json.dumps(CONFIG))
    assert isinstance(known, ModelFacts)
    reckoned_otherwise = replace(known, max_model_len=1, layers=known.layers[:2], stageable=False)
    said = told(facts={"supportsPP": True, "weights": {"1": WEIGHTS}})
    assert with_told(said, known).digest == with_told(said, reckoned_otherwise).digest
    assert with_told({}, known) == known


DAMAGED_WEIGHTS: dict[str, Any] = {
    "a list": [],
    "no size": {"x": WEIGHTS},
    "a negative size": {"1": {**WEIGHTS, "head": -1}},
    "a size that is true": {"1": {**WEIGHTS, "head": True}},
    "more layers than the config has": {"1": {**WEIGHTS, "layers": [[5, 1]]}},
    "layers without end": {"1": {**WEIGHTS, "layers": [[10**9, 1]]}},
    "runs of three numbers": {"1": {**WEIGHTS, "layers": [[1, 2, 3]]}},
    "tied to something": {"1": {**WEIGHTS, "tied": "no"}},
}


@pytest.mark.parametrize("case", DAMAGED_WEIGHTS)
def test_damaged_weights_leave_the_config_to_reckon_with(case: str) -> None:
    found = facts(weights=DAMAGED_WEIGHTS[case])
    assert isinstance(found, ModelFacts)
    assert found.measured == ()


DAMAGED_CONFIGS: dict[str, Any] = {
    "no config": None,
    "not base64": "?",
    "not zlib": base64.b64encode(b"x" * 50).decode(),
}


@pytest.mark.parametrize("case", DAMAGED_CONFIGS)
def test_without_a_config_the_user_is_asked_for_one(case: str) -> None:
    found = facts(config=DAMAGED_CONFIGS[case])
    assert isinstance(found, FactsError)
    assert (found.reason, found.field) == ("ModelConfigMissing", "spec.model.config")


def test_a_config_that_unpacks_to_gigabytes_is_cut_off() -> None:
    bomb = base64.b64encode(zlib.compress(b" " * (2 * MAX_BYTES))).decode()
    found = facts(config=bomb)
    assert isinstance(found, FactsError)
