"""What Kubernetes and LeaderWorkerSet share is compiled once in a cold build."""

from __future__ import annotations

import re

import pytest

from e2e.cluster.programs import ARGO_CD, FLUX, KSTATUS, KUBERNETES, LWS, ProgramSet


def required(programs: ProgramSet) -> dict[str, str]:
    """Module -> the version that go.mod asks for."""
    lines = (programs.directory / "go.mod").read_text().splitlines()
    found = (
        re.match(r"(?:require)?\s+([\w.~/-]+\.[\w.~/-]+) (v\S+)", line) for line in lines if "=>" not in line
    )
    return {match[1]: match[2] for match in found if match}


@pytest.mark.parametrize(
    ("programs", "shares"),
    [
        pytest.param(LWS, {"k8s.io/client-go", "k8s.io/apimachinery", "golang.org/x/net"}, id="lws"),
        pytest.param(KSTATUS, {"k8s.io/api", "k8s.io/apimachinery", "golang.org/x/net"}, id="kstatus"),
    ],
)
def test_what_is_shared_with_kubernetes_is_asked_for_in_the_same_versions(
    programs: ProgramSet, shares: set[str]
) -> None:
    kubernetes, others = required(KUBERNETES), required(programs)
    shared = kubernetes.keys() & others.keys()
    assert shares <= shared
    assert {
        module: (kubernetes[module], others[module])
        for module in shared
        if kubernetes[module] != others[module]
    } == {}


@pytest.mark.parametrize("programs", [*FLUX, ARGO_CD], ids=lambda programs: programs.name)
def test_gitops_tools_have_the_client_libraries_of_this_kubernetes(programs: ProgramSet) -> None:
    for module in ("k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"):
        assert required(programs)[module] == required(KUBERNETES)[module]
