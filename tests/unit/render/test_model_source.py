from __future__ import annotations

import pytest

from bowsprit.render.model_source import ModelSource, model_source

SOURCES = {
    "hf://meta-llama/Llama-3.1-70B": ModelSource("meta-llama/Llama-3.1-70B", takes_revision=True),
    "pvc://models/llama/8b": ModelSource("/mnt/model/llama/8b", claim="models"),
    "pvc://models/llama/": ModelSource("/mnt/model/llama", claim="models"),
    "pvc://models": ModelSource("/mnt/model", claim="models"),
    "oci://registry.example.com/llama:8b": ModelSource(
        "/mnt/model/models", image="registry.example.com/llama:8b"
    ),
    "s3://bucket/llama": ModelSource("s3://bucket/llama", streamed=True),
    "gs://bucket/llama": ModelSource("gs://bucket/llama", streamed=True),
    "az://container/llama": ModelSource("az://container/llama", streamed=True),
}


@pytest.mark.parametrize("uri", SOURCES)
def test_source_of(uri: str) -> None:
    assert model_source(uri) == SOURCES[uri]


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "llama",
        "hf://",
        "hf://-a/b",
        "hf://a/b/c",
        "pvc://",
        "pvc://models/../x",
        "s3://",
        "oci://",
        "oci://a b",
        "s3:// a",
    ],
)
def test_no_source_of(uri: str) -> None:
    assert model_source(uri) is None
