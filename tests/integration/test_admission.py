"""Quotas, limits and policies of the cluster refuse what a model needs: their words reach its user, nothing
spins, and it goes on by itself when they give way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.cluster.control_plane import KubectlFailed
from tests.integration.arena import Arena, Json, OperatorProcess
from tests.integration.life import TWO_PODS, events, metric
from tests.integration.referee import GPU

pytestmark = pytest.mark.integration

SHAPES: dict[str, Mapping[str, Any]] = {"a Deployment": {}, "a LeaderWorkerSet": TWO_PODS}
WORDS = "engines need an owner label"
"""What a policy says: no model of a test has this label."""


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_quota_that_refuses_the_pods_is_named(stage: Arena, shape: Mapping[str, Any]) -> None:
    stage.nodes(1, gpus=2)
    stage.apply(quota(stage.namespace, {f"requests.{GPU}": "0"}))
    stage.wait("the quota to be counted", lambda: bool(quota_status(stage)))
    stage.model("chat", **shape)
    ready = stage.wait_reason("chat", "Ready", "ApplyFailed")
    assert "exceeded quota: team" in ready["message"]
    assert f"limited: requests.{GPU}=0" in ready["message"]
    assert "chat-" in ready["message"]
    assert stage.condition("chat", "Stalled")["status"] == "False"
    stage.apply(quota(stage.namespace, {f"requests.{GPU}": "2"}))
    stage.wait_ready("chat")
    assert_told_once(stage)


def test_a_quota_that_refuses_the_workload_is_named_and_tried_again(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.apply(quota(stage.namespace, {"count/deployments.apps": "0"}))
    stage.wait("the quota to be counted", lambda: bool(quota_status(stage)))
    stage.model("chat")
    ready = stage.wait_reason("chat", "Ready", "ApplyFailed")
    assert "The API server refused Deployment/chat-" in ready["message"]
    assert "exceeded quota: team" in ready["message"]
    stage.kubectl("delete", "resourcequota", "team")
    stage.wait_ready("chat")


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_limit_range_that_refuses_the_pods_is_named(stage: Arena, shape: Mapping[str, Any]) -> None:
    stage.nodes(1, gpus=2)
    stage.apply(limit_range(stage.namespace, {GPU: "0"}))
    stage.model("chat", **shape)
    ready = stage.wait_reason("chat", "Ready", "ApplyFailed")
    assert f"maximum {GPU} usage per Pod is 0, but limit is 1" in ready["message"]
    assert "The API server refuses pods of " in ready["message"]
    assert stage.condition("chat", "Stalled")["status"] == "False"
    stage.apply(limit_range(stage.namespace, {GPU: "8"}))
    stage.wait_ready("chat", seconds=90)
    assert_told_once(stage)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_policy_that_refuses_the_pods_is_named(stage: Arena, shape: Mapping[str, Any]) -> None:
    stage.nodes(1, gpus=2)
    with policy(stage, "", "pods", ["CREATE"]):
        stage.model("chat", **shape)
        ready = stage.wait_reason("chat", "Ready", "ApplyFailed")
        assert WORDS in ready["message"]
        assert "The API server refuses pods of " in ready["message"]
        assert stage.condition("chat", "Stalled")["status"] == "False"
    stage.wait_ready("chat", seconds=90)
    assert_told_once(stage)


def test_a_policy_that_refuses_the_workload_is_named(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    with policy(stage, "apps", "deployments", ["CREATE", "UPDATE"]):
        stage.model("chat")
        ready = stage.wait_reason("chat", "Ready", "ApplyFailed")
        assert WORDS in ready["message"]
        assert "Deployment/chat-" in ready["message"]
    stage.wait_ready("chat", seconds=90)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_policy_that_refuses_the_pins_is_named_and_asked_again_with_growing_pauses(
    stage: Arena, operator: OperatorProcess, shape: Mapping[str, Any]
) -> None:
    stage.nodes(1, gpus=2)
    with policy(stage, "", "pods", ["UPDATE"]):
        stage.model("chat", **shape)
        ready = stage.wait_reason("chat", "Ready", "ApplyFailed")
        assert "The API server refused Pod/chat-" in ready["message"]
        assert WORDS in ready["message"]
        assert stage.condition("chat", "Stalled")["status"] == "False"
        first = tries(operator)
        stage.wait("three tries", lambda: tries(operator) >= first + 3)
        before = tries(operator), passes(operator)
        stage.wait("another try", lambda: tries(operator) > before[0])
        # A pass for the try, and none for what it has written.
        assert passes(operator) - before[1] <= 2 * (tries(operator) - before[0])
    stage.wait_ready("chat", seconds=90)
    assert_told_once(stage)


def test_a_policy_that_refuses_deletions_is_named_and_the_pods_go_when_it_gives_way(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.model("chat")
    stage.wait_ready("chat")
    with policy(stage, "apps", "deployments", ["DELETE"]):
        stage.patch("chat", {"suspend": True})
        stage.wait("the refusal", lambda: WORDS in stage.condition("chat", "Reconciling")["message"])
    stage.wait("the pods to go", lambda: not stage.pods("chat"), seconds=90)
    stage.wait("the refusal to be over", lambda: stage.condition("chat", "Reconciling")["status"] == "False")


def assert_told_once(arena: Arena) -> None:
    """Events do not come with every try."""
    arena.wait("the last event", lambda: "ReplicasReady" in reasons(arena))
    assert reasons(arena)["ApplyFailed"] == 1


def reasons(arena: Arena) -> Counter[str]:
    return Counter(event["reason"] for event in events(arena, "chat"))


def tries(operator: OperatorProcess) -> float:
    return metric(operator, "bowsprit_reconcile_errors_total", kind="Refused")


def passes(operator: OperatorProcess) -> float:
    return metric(operator, "bowsprit_reconcile_duration_seconds_count")


def quota(namespace: str, hard: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": namespace},
        "spec": {"hard": hard},
    }


def quota_status(arena: Arena) -> Json:
    path = f"/api/v1/namespaces/{arena.namespace}/resourcequotas/team"
    return dict(arena.api.get(path).get("status", {}).get("hard", {}))


def limit_range(namespace: str, most: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "team", "namespace": namespace},
        "spec": {"limits": [{"type": "Pod", "max": most}]},
    }


@contextmanager
def policy(arena: Arena, group: str, resource: str, operations: Sequence[str]) -> Iterator[None]:
    """A ValidatingAdmissionPolicy in the test's namespace: what is written or deleted has an owner label."""
    name = f"{arena.namespace}.arena.test"
    arena.cluster.apply(*_policy(name, arena.namespace, group, resource, operations))
    try:
        arena.wait("the policy to act", lambda: _refuses(arena))
        yield
    finally:
        arena.cluster.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", name)


def _policy(name: str, namespace: str, group: str, resource: str, operations: Sequence[str]) -> list[Json]:
    namespaces = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    # It takes a moment until a policy acts: a ConfigMap of this name, which must be refused, shows when.
    probe = {**_rule("", "configmaps", ["CREATE"]), "resourceNames": ["probe"]}
    rules = [_rule(group, resource, operations), probe]
    expression = "'owner' in (object == null ? oldObject : object).metadata.labels"
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules},
                "validations": [{"expression": expression, "message": WORDS}],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": namespaces},
            },
        },
    ]


def _rule(group: str, resource: str, operations: Sequence[str]) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": [resource],
    }


def _refuses(arena: Arena) -> bool:
    """Whether the probe is refused (a dry run)."""
    try:
        arena.kubectl("create", "configmap", "probe", "--dry-run=server")
    except KubectlFailed:
        return True
    return False
