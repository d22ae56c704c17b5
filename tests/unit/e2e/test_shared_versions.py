"""What Kubernetes and LeaderWorkerSet share is compiled once in a cold build."""

from __future__ import annotations

import re

from e2e.cluster.programs import KUBERNETES, LWS, ProgramSet


def required(programs: ProgramSet) -> dict[str, str]:
    """Module -> the version that go.mod asks for."""
    lines = (programs.directory / "go.mod").read_text().splitlines()
    found = (
        re.match(r"(?:require)?\s+([\w.~/-]+\.[\w.~/-]+) (v\S+)", line) for line in lines if "=>" not in line
    )
    return {match[1]: match[2] for match in found if match}


def test_kubernetes_and_lws_ask_for_the_same_versions() -> None:
    kubernetes, lws = required(KUBERNETES), required(LWS)
    shared = kubernetes.keys() & lws.keys()
    assert {"k8s.io/client-go", "k8s.io/apimachinery", "golang.org/x/net"} <= shared
    assert {
        module: (kubernetes[module], lws[module]) for module in shared if kubernetes[module] != lws[module]
    } == {}
