"""What a pod asks for beside GPUs is what the scheduler will read in it, wherever it was said."""

from __future__ import annotations

import pytest

from bowsprit.render.requests import needs_of
from bowsprit.render.revision import revision_of
from tests.unit.render.examples import FACTS, spec

GIB = 2**30
SIDECAR = {"name": "logs", "image": "logs", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}

CASES = {
    "the engine's requests": (
        {"engine": {"resources": {"requests": {"cpu": 8, "memory": "64Gi"}}}},
        {"cpu": 8000, "memory": 64 * GIB},
    ),
    "a limit alone is a request": ({"engine": {"resources": {"limits": {"cpu": "1.5"}}}}, {"cpu": 1500}),
    "containers of the template come on top": (
        {
            "engine": {"resources": {"requests": {"cpu": 8, "memory": "64Gi"}}},
            "template": {"spec": {"containers": [SIDECAR]}},
        },
        {"cpu": 8500, "memory": 65 * GIB},
    ),
    "an init container of the template only when it asks for more": (
        {
            "engine": {"resources": {"requests": {"cpu": 8, "memory": "64Gi"}}},
            "template": {
                "spec": {
                    "initContainers": [
                        {"name": "fetch", "image": "f", "resources": {"requests": {"memory": "80Gi"}}}
                    ]
                }
            },
        },
        {"cpu": 8000, "memory": 80 * GIB},
    ),
    "a host port": (
        {"template": {"spec": {"containers": [{**SIDECAR, "ports": [{"containerPort": 9, "hostPort": 9}]}]}}},
        {"host port TCP/9": 1},
    ),
    "all ports in the host's network": (
        {"template": {"spec": {"hostNetwork": True}}},
        {"host port TCP/8000": 1},
    ),
    "a network card": (
        {"engine": {"resources": {"limits": {"rdma/hca": 1}}}},
        {"rdma/hca": 1},
    ),
}


@pytest.mark.parametrize(("fields", "asked"), CASES.values(), ids=CASES)
def test_needs(fields, asked):
    needs = dict(needs_of("m", revision_of(spec(**fields), FACTS, "m", {})))
    assert needs.items() >= asked.items()
    assert needs["pods"] == 1
    assert not any("gpu" in resource for resource in needs)
