"""What is said of a model's files, and how config.json goes into the report."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight.model_files import INDEX, hub_fault, packed, read_config, weights_fault
from bowsprit_runtime.report import Fault


def named(name: str, *under: type[BaseException]) -> type[BaseException]:
    """The hub's exceptions are known by name: their modules moved between versions."""
    return type(name, under or (Exception,), {})


HUB_ERROR = named("HfHubHTTPError")
MISSING = named("EntryNotFoundError", HUB_ERROR)
HUB: dict[str, tuple[type[BaseException], tuple[str, str] | None]] = {
    "gated": (
        named("GatedRepoError", named("RepositoryNotFoundError", HUB_ERROR)),
        (reasons.MODEL_GATED, "spec"),
    ),
    "no such model": (named("RepositoryNotFoundError", HUB_ERROR), (reasons.MODEL_NOT_FOUND, "spec")),
    "no such revision": (named("RevisionNotFoundError", HUB_ERROR), (reasons.REVISION_NOT_FOUND, "spec")),
    "no name of a model": (named("HFValidationError"), (reasons.MODEL_NOT_FOUND, "spec")),
    "a server error": (HUB_ERROR, (reasons.HUB_UNREACHABLE, "network")),
    "no connection": (named("ConnectError"), (reasons.HUB_UNREACHABLE, "network")),
    "not in the cache, because there is no connection": (
        named("LocalEntryNotFoundError", MISSING),
        (reasons.HUB_UNREACHABLE, "network"),
    ),
    "another file that is missing": (MISSING, None),
    "no error of the hub": (ValueError, None),
}


@pytest.mark.parametrize("case", HUB)
def test_what_an_error_of_the_hub_means(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    error, expected = HUB[case]
    fault = hub_fault(error("…"), "org/model", "main")
    assert (fault and (fault.reason, fault.blame)) == expected


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [
        ("", "huggingface.co"),
        ("https://me:s3cr3t@hub.example.com:8443/x", "hub.example.com:8443"),
        ("http://[", "["),
    ],
)
def test_a_hub_that_does_not_answer_is_named(
    endpoint: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    fault = hub_fault(named("ConnectError")("no route"), "org/model", None)
    assert fault is not None
    assert fault.message == f"org/model: the hub at {host} does not answer: no route"


def test_with_the_hub_switched_off_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    fault = hub_fault(named("OfflineModeIsEnabled", ConnectionError)("…"), "org/model", None)
    assert fault
    assert (fault.reason, fault.blame) == (reasons.MODEL_NOT_FOUND, "spec")
    assert "HF_HUB_OFFLINE" in fault.message


def test_the_token_is_named_as_there_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    fault = hub_fault(named("GatedRepoError")("…"), "org/model", None)
    assert fault
    assert fault.message == "org/model is gated, and the hub was asked with the token that the pod has"


@pytest.mark.parametrize("model", ["s3://bucket/model", "gs://bucket/model"])
def test_where_vllm_alone_knows_the_way_nothing_is_read(model: str) -> None:
    assert read_config(model, None, None) is None


@pytest.mark.parametrize("content", [b"[]", b"null", b'"text"', b"1e999999", b"[" * 100_000])
def test_a_config_that_is_no_object_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(Fault) as refused:
        read_config(str(tmp_path), None, None)
    assert (refused.value.reason, refused.value.blame) == (reasons.CONFIG_INVALID, "model")


def test_a_folder_of_another_format_is_left_to_vllm(tmp_path: Path) -> None:
    (tmp_path / "params.json").touch()
    assert read_config(str(tmp_path), None, None) is None


@pytest.mark.parametrize(
    ("index", "there", "message"),
    [
        pytest.param(None, ["pytorch_model.bin"], None, id="weights of another format"),
        pytest.param(
            None,
            ["training_args.bin", "optimizer.pt"],
            "/model has a config.json and no weights (*.safetensors, *.bin …)",
            id="only what training leaves behind",
        ),
        pytest.param(
            [1],
            [],
            "model.safetensors.index.json cannot be read: it names files that are no names",
            id="an index of numbers",
        ),
        pytest.param({"a": "1.safetensors"}, ["1.safetensors"], None, id="all that the index names"),
        pytest.param(
            {"a": "1.safetensors", "b": "2.safetensors"},
            ["1.safetensors"],
            "1 of the 2 files that model.safetensors.index.json names are missing, 2.safetensors first",
            id="a download that was cut off",
        ),
    ],
)
def test_weights(index: Any, there: list[str], message: str | None, tmp_path: Path) -> None:
    for name in there:
        (tmp_path / name).touch()
    if index:
        files = index if isinstance(index, dict) else dict.fromkeys("a", *index)
        (tmp_path / INDEX).write_text(json.dumps({"weight_map": files}))
    fault = weights_fault(str(tmp_path))
    assert (fault and fault.message.replace(str(tmp_path), "/model")) == message
    assert fault is None or (fault.reason, fault.blame) == (reasons.WEIGHTS_MISSING, "model")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"weight_map": []}', "[" * 100_000, '{"weight_map": {"a": []}}']
)
def test_an_index_that_is_none_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(text)
    fault = weights_fault(str(tmp_path))
    assert fault
    assert fault.message.startswith(f"{INDEX} cannot be read: ")


def test_an_index_without_end_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / INDEX).open("wb") as file:
        file.truncate(10**9)
    fault = weights_fault(str(tmp_path))
    assert fault
    assert fault.message == f"{INDEX} cannot be read: it has 1000.0 MB; at most 67.1 MB are read"


def test_labels_are_left_out_of_the_report() -> None:
    config = {"num_labels": 2, "id2label": {"0": "a"}, "label2id": {"a": 0}, "_name_or_path": "/home/me"}
    assert json.loads(zlib.decompress(base64.b64decode(packed(config)))) == {"num_labels": 2}
