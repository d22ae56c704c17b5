"""A kubeconfig that cannot be used: the sentence names the file and the fault, and never what is in it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio.config import ConfigException

from bowsprit.cluster.client import connect

TOKEN = "very-secret"


def kubeconfig(**changes: Any) -> str:
    """Two contexts, `a` is the current one. JSON is YAML."""
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in "ab"],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443"}} for name in "ab"],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
    }
    return json.dumps({**whole, **changes})


def cluster(**certificate: str) -> str:
    return kubeconfig(clusters=[{"name": "a", "cluster": {"server": "https://a", **certificate}}])


NO_CERTIFICATE = base64.b64encode(b"no certificate").decode()
NOT_ONE = "not a kubeconfig"

UNUSABLE = [
    pytest.param(b"", NOT_ONE, id="an empty file"),
    pytest.param(b"words", NOT_ONE, id="a text"),
    pytest.param(b"- 1", NOT_ONE, id="a list"),
    pytest.param(b"a: [", NOT_ONE, id="no YAML"),
    pytest.param(b"\x7fELF\xff\x00", NOT_ONE, id="a binary file"),
    pytest.param(b"kind: Pod", "there is no context in it", id="another object"),
    pytest.param(kubeconfig(contexts=3), NOT_ONE, id="contexts that are a number"),
    pytest.param(kubeconfig(contexts=[{}]), NOT_ONE, id="a context without a name"),
    pytest.param(kubeconfig(users=[TOKEN]), "context 'a' is not complete", id="a user that is a text"),
    pytest.param(
        kubeconfig(**{"current-context": None}),
        "it has no current-context; its contexts are: a, b",
        id="no current context",
    ),
    pytest.param(
        kubeconfig(**{"current-context": "z"}),
        "it has no context 'z'; its contexts are: a, b",
        id="a current context that is not there",
    ),
    pytest.param(kubeconfig(clusters=[]), "context 'a' is not complete", id="no cluster"),
    pytest.param(
        kubeconfig(users=[{"name": "u", "user": None, "token": TOKEN}]),
        "context 'a' is not complete",
        id="a user that is indented wrongly",
    ),
    pytest.param(
        cluster(**{"certificate-authority": "/none"}),
        "context 'a' is not complete",
        id="a certificate that is not there",
    ),
    pytest.param(
        cluster(**{"certificate-authority-data": "abc"}),
        "context 'a' is not complete",
        id="a certificate that is not base64",
    ),
    pytest.param(
        cluster(**{"certificate-authority-data": NO_CERTIFICATE}),
        "a certificate or key of it cannot be used",
        id="a certificate that is none",
    ),
]


@pytest.fixture(params=["by the option", "by the variable"])
def named(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The option that names tmp_path/config, or None when $KUBECONFIG does."""
    file = str(tmp_path / "config")
    monkeypatch.setenv("KUBECONFIG", file if request.param == "by the variable" else "")
    return file if request.param == "by the option" else None


@pytest.mark.parametrize(("content", "fault"), UNUSABLE)
async def test_the_file_and_its_fault_are_named(
    content: str | bytes, fault: str, named: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "config"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConfigException) as caught:
        await connect(named)
    assert str(caught.value).startswith(f"{file}: {fault}")
    assert TOKEN not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caplog.records == []


async def test_a_folder_is_no_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(ConfigException, match=f"{tmp_path}: cannot be read: Is a directory"):
        await connect(str(tmp_path))


async def test_a_file_that_is_named_and_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigException, match=f"^there is no file {tmp_path}/none$"):
        await connect(f"{tmp_path}/none")
    assert caplog.records == []


async def test_no_file_and_no_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/x:{tmp_path}/y")
    words = f"there is no file {tmp_path}/x or {tmp_path}/y, and this is no pod of a cluster"
    with pytest.raises(ConfigException, match=f"^{words}$"):
        await connect()
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigException, match=f"^there is no file {tmp_path}/.kube/config, and "):
        await connect()
    assert caplog.records == []


async def test_a_context_that_is_asked_for_is_not_replaced_by_the_account_of_the_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none")
    with pytest.raises(ConfigException, match=f"^there is no file {tmp_path}/none$"):
        await connect(context="a")


@pytest.mark.parametrize(
    ("context", "server"), [(None, "https://a.example:6443"), ("b", "https://b.example:6443")]
)
async def test_the_context_chooses_the_server(context: str | None, server: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(kubeconfig())
    client = await connect(str(file), context)
    try:
        assert client.api.configuration.host == server
    finally:
        await client.close()


async def test_files_of_the_variable_are_merged_and_those_that_are_not_there_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "contexts").write_text(kubeconfig(clusters=[]))
    (tmp_path / "clusters").write_text(kubeconfig(contexts=[], users=[]))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none:{tmp_path}/contexts:{tmp_path}/clusters")
    client = await connect(context="b")
    try:
        assert client.api.configuration.host == "https://b.example:6443"
    finally:
        await client.close()
