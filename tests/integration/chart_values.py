"""Values that the chart is tested with."""

from __future__ import annotations

from typing import Any

DIGEST = "sha256:" + "0123456789abcdef" * 4

TABLE: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "everything that may be on is on": {
        "replicaCount": 3,
        "image": {"repository": "registry.example/operator", "tag": "1", "digest": DIGEST},
        "imagePullSecrets": [{"name": "credentials"}],
        "runtimeImage": "registry.example/runtime:1",
        "serviceAccount": {"annotations": {"example.com/role": "a"}},
        "products": [
            {"nodeSelector": {"pool": "a"}, "product": "NVIDIA-GB10", "memoryMiB": 119000, "linked": False}
        ],
        "extraArgs": ["--resync=60", "--writers=4"],
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "podDisruptionBudget": {"maxUnavailable": "50%"},
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 60,
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "operator"}},
                    }
                ]
            }
        },
        "commonLabels": {"team": "ml"},
        "podLabels": {"mesh": "off"},
        "podAnnotations": {"example.com/note": "yes"},
        "metrics": {"service": {"annotations": {"prometheus.io/scrape": "true"}}},
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [
                {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
            ],
            "apiServerPorts": [6443],
        },
    },
    "everything that may be off is off": {
        "replicaCount": 1,
        "crds": {"enabled": False},
        "rbac": {"aggregateClusterRoles": False},
        "podDisruptionBudget": {"enabled": False},
        "metrics": {"service": {"enabled": False}},
        "topologySpreadConstraints": [],
        "nodeSelector": None,
    },
    "the CRD goes with the release": {"crds": {"keep": False}},
    "an account and names of the user's own": {
        "nameOverride": "planner",
        "fullnameOverride": "gpu-planner",
        "serviceAccount": {"create": False, "name": "somebody"},
    },
    "a spread with a selector of the user's own": {
        "topologySpreadConstraints": [
            {
                "topologyKey": "topology.kubernetes.io/zone",
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ]
    },
    "nobody operates for now": {"replicaCount": 0},
}

MONITORED: dict[str, Any] = {
    "metrics": {
        "serviceMonitor": {
            "enabled": True,
            "interval": "15s",
            "scrapeTimeout": "10s",
            "labels": {"release": "prometheus"},
            "relabelings": [{"action": "labeldrop", "regex": "pod"}],
            "metricRelabelings": [{"action": "drop", "sourceLabels": ["__name__"], "regex": "python_.*"}],
        }
    }
}
"""Apart from the table, because a cluster without the Prometheus operator does not take it."""

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a value that nobody knows": ({"replicas": 3}, "replicas"),
    "a value that nobody knows in a group": ({"image": {"name": "x"}}, "name"),
    "a digest that is none": ({"image": {"digest": "latest"}}, "image/digest"),
    "a tag that YAML reads as a number": ({"image": {"tag": 1.4}}, "image/tag"),
    "a word for a number": ({"replicaCount": "two"}, "replicaCount"),
    "a pull policy that is none": ({"image": {"pullPolicy": "Sometimes"}}, "image/pullPolicy"),
    "a pull secret in the short form of some other charts": (
        {"imagePullSecrets": ["credentials"]},
        "imagePullSecrets/0",
    ),
    "resources without the word limits": ({"resources": {"cpu": 1}}, "resources"),
    "a product for no node": ({"products": [{"product": "NVIDIA-GB10"}]}, "products/0"),
    "less time than the last writes take": (
        {"terminationGracePeriodSeconds": 1},
        "terminationGracePeriodSeconds",
    ),
    "an account of the user's own without a name": (
        {"serviceAccount": {"create": False}},
        "serviceAccount.name",
    ),
    "a ServiceMonitor that would find no Service": (
        {"metrics": {"service": {"enabled": False}, "serviceMonitor": {"enabled": True}}},
        "metrics.service.enabled",
    ),
}

CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "nameOverride": ("other", {}),
    "fullnameOverride": ("other", {}),
    "replicaCount": (5, {}),
    "image.repository": ("other", {}),
    "image.tag": ("other", {}),
    "image.digest": (DIGEST, {}),
    "image.pullPolicy": ("Always", {}),
    "imagePullSecrets": ([{"name": "other"}], {}),
    "runtimeImage": ("other", {}),
    "crds.enabled": (False, {}),
    "crds.keep": (False, {}),
    "rbac.aggregateClusterRoles": (False, {}),
    "serviceAccount.create": (False, {"serviceAccount": {"name": "somebody"}}),
    "serviceAccount.name": ("other", {}),
    "serviceAccount.annotations": ({"other": "x"}, {}),
    "products": ([{"nodeSelector": {"other": "x"}}], {}),
    "extraArgs": (["--resync=60"], {}),
    "extraEnv": ([{"name": "OTHER"}], {}),
    "extraVolumes": ([{"name": "other"}], {}),
    "extraVolumeMounts": ([{"name": "other", "mountPath": "/other"}], {}),
    "resources": ({"limits": {"cpu": "7"}}, {}),
    "podSecurityContext": ({"fsGroup": 7}, {}),
    "securityContext": ({"privileged": True}, {}),
    "podDisruptionBudget.enabled": (False, {}),
    "podDisruptionBudget.maxUnavailable": ("70%", {}),
    "priorityClassName": ("other", {}),
    "terminationGracePeriodSeconds": (70, {}),
    "nodeSelector": ({"other": "x"}, {}),
    "tolerations": ([{"key": "other"}], {}),
    "affinity": ({"podAffinity": {}}, {}),
    "topologySpreadConstraints": ([], {}),
    "commonLabels": ({"other": "x"}, {}),
    "podLabels": ({"other": "x"}, {}),
    "podAnnotations": ({"other": "x"}, {}),
    "metrics.service.enabled": (False, {}),
    "metrics.service.annotations": ({"other": "x"}, {}),
    "metrics.serviceMonitor.enabled": (True, {}),
    "metrics.serviceMonitor.interval": ("70s", MONITORED),
    "metrics.serviceMonitor.scrapeTimeout": ("7s", MONITORED),
    "metrics.serviceMonitor.labels": ({"other": "x"}, MONITORED),
    "metrics.serviceMonitor.relabelings": ([], MONITORED),
    "metrics.serviceMonitor.metricRelabelings": ([], MONITORED),
    "networkPolicy.enabled": (True, {}),
    "networkPolicy.metricsFrom": ([{"podSelector": {}}], {"networkPolicy": {"enabled": True}}),
    "networkPolicy.apiServerPorts": ([7], {"networkPolicy": {"enabled": True}}),
}
"""Another value of each, and beside which others it shows."""
