"""What the operator may do, as data: the RBAC manifest is generated from this table.

No rule names Secrets, and none is a wildcard. The integration tests run the operator with exactly these
rights.
"""

from __future__ import annotations

from typing import Any

from bowsprit.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEADER_WORKER_SETS,
    LEASES,
    MODEL_DEPLOYMENTS,
    NODES,
    PODS,
    SERVICES,
)

NAME = "bowsprit-operator"
NAMESPACE = "bowsprit-system"

_Rule = tuple[str, str, tuple[str, ...], str]
"""Group, resource, verbs, and what for."""

_READ = ("get", "list", "watch")
_OWN = (*_READ, "create", "patch", "delete")

_RULES: tuple[_Rule, ...] = (
    (MODEL_DEPLOYMENTS.group, MODEL_DEPLOYMENTS.plural, _READ, "what the users want"),
    (
        MODEL_DEPLOYMENTS.group,
        f"{MODEL_DEPLOYMENTS.plural}/status",
        ("patch",),
        "the only part that is written",
    ),
    (
        MODEL_DEPLOYMENTS.group,
        f"{MODEL_DEPLOYMENTS.plural}/finalizers",
        ("update",),
        "blockOwnerDeletion on children, where OwnerReferencesPermissionEnforcement is on",
    ),
    (NODES.group, NODES.plural, ("list", "watch"), "which GPUs there are"),
    (
        PODS.group,
        PODS.plural,
        (*_READ, "patch", "delete"),
        "who holds GPUs; pinning, and removing groups that failed",
    ),
    (
        CONFIG_MAPS.group,
        CONFIG_MAPS.plural,
        _OWN,
        "config.json of the models, all others as metadata only; reports of preflight",
    ),
    (JOBS.group, JOBS.plural, _OWN, "preflight"),
    (SERVICES.group, SERVICES.plural, _OWN, "the head Services"),
    (DEPLOYMENTS.group, DEPLOYMENTS.plural, _OWN, "replicas of one pod"),
    (CONTROLLER_REVISIONS.group, CONTROLLER_REVISIONS.plural, _OWN, "the history"),
    (LEADER_WORKER_SETS.group, LEADER_WORKER_SETS.plural, _OWN, "replicas of several pods"),
    (EVENTS.group, EVENTS.plural, ("create",), "turning points"),
    (
        EVENTS.group,
        EVENTS.plural,
        ("list", "watch"),
        "FailedCreate only: why pods are missing, such as a quota",
    ),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        ("list", "watch"),
        "whether LeaderWorkerSet is installed",
    ),
    ("", "namespaces", ("list", "watch"), "kopf's discovery"),
)

_LEASE_RULES: tuple[_Rule, ...] = (
    (LEASES.group, LEASES.plural, ("get", "create", "patch"), "leader election"),
)


def manifests(namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """ServiceAccount, ClusterRole and Role with their bindings, for an operator in `namespace`."""
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}},
        _role("ClusterRole", {"name": NAME}, _RULES),
        _binding("ClusterRole", {"name": NAME}, account),
        _role("Role", {"name": NAME, "namespace": namespace}, _LEASE_RULES),
        _binding("Role", {"name": NAME, "namespace": namespace}, account),
    ]


def reasons() -> list[tuple[str, str, str]]:
    """(resource, verbs, why) of every rule, for the reference page."""
    return [
        (f"{resource}.{group}" if group else resource, ", ".join(verbs), why)
        for group, resource, verbs, why in (*_RULES, *_LEASE_RULES)
    ]


def _role(kind: str, metadata: dict[str, str], rules: tuple[_Rule, ...]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": [
            {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
            for group, resource, verbs, _ in rules
        ],
    }


def _binding(kind: str, metadata: dict[str, str], account: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME},
        "subjects": [account],
    }
