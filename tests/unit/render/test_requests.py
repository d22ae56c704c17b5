"""What a pod asks for beside GPUs is what the scheduler will read in it, wherever it was said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.render.problems import can_be_rendered, problems
from bowsprit.render.requests import needs_of
from bowsprit.render.revision import revision_of
from tests.unit.render.examples import FACTS, spec

GIB = 2**30
GPU = "nvidia.com/gpu"
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


def in_template(kind, **resources):
    return {"template": {"spec": {kind: [{"name": "other", "image": "i", "resources": resources}]}}}


ODD = {
    "an init container that asks for GPUs": (
        in_template("initContainers", limits={GPU: 8}),
        {GPU: 8},
    ),
    "a sidecar that asks for a GPU": (in_template("containers", limits={GPU: 1}), {GPU: 2}),
    "an engine that asks for none": ({"engine": {"resources": {"requests": {GPU: 0}}}}, {}),
    "GPUs of another vendor": (in_template("containers", limits={"amd.com/gpu": 1}), {"amd.com/gpu": 1}),
    "resources of the whole pod": (
        {"template": {"spec": {"resources": {"requests": {"cpu": 40, GPU: 1}}}}},
        {"cpu": 40_000},
    ),
    "an overhead": ({"template": {"spec": {"overhead": {"cpu": "40"}}}}, {"cpu": 42_000}),
    "an overhead that is none": ({"template": {"spec": {"overhead": ["cpu"]}}}, {"cpu": 2000}),
    "limits of a container that are none": (in_template("containers", limits="8"), {"cpu": 2000}),
    "limits of a container that are taken back": (in_template("containers", limits=None), {"cpu": 2000}),
    "quantities that are none": (in_template("containers", limits={"cpu": "much", "memory": [1]}), {}),
    "names that are numbers": (in_template("containers", limits={1: 2}), {"cpu": 2000}),
}


@pytest.mark.parametrize(("fields", "asked"), ODD.values(), ids=ODD)
def test_odd_shapes_are_read_as_far_as_they_can_be(fields, asked):
    odd = spec(**fields)
    assert problems(odd) == ()
    needs = dict(needs_of("m", revision_of(odd, FACTS, "m", {})))
    assert needs.items() >= asked.items()
    assert (GPU in needs) == (GPU in asked)


REFUSED = {
    "claims": (
        {"claims": [{"name": "gpu"}]},
        "spec.engine.resources: claims is neither limits nor requests: leave it out",
    ),
    "limits that are no object": (
        {"limits": ["cpu"]},
        "spec.engine.resources.limits: must map resources to quantities, as in {cpu: 8}",
    ),
    "requests that are taken back": (
        {"requests": None},
        "spec.engine.resources.requests: must map resources to quantities, as in {cpu: 8}",
    ),
}


@pytest.mark.parametrize(("resources", "fault"), REFUSED.values(), ids=REFUSED)
def test_resources_that_cannot_be_read_are_refused(resources, fault):
    odd = spec(engine={"resources": resources})
    assert problems(odd) == (fault,)
    assert not can_be_rendered(odd)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 9)
    | st.sampled_from(["cpu", "1Gi", GPU, "limits", "engine", ""]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["limits", "requests", "cpu", GPU, "claims", "name", "resources"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(["limits", "requests", "claims", "cpu", GPU]), ANYTHING, max_size=3)
PLACES = [
    lambda value: {"engine": {"resources": value}},
    lambda value: {"template": value},
    lambda value: {"template": {"spec": value}},
    lambda value: {"template": {"spec": {"resources": value, "overhead": value}}},
    lambda value: {"template": {"spec": {"containers": [{"name": "engine", "resources": value}]}}},
    lambda value: {"template": {"spec": {"initContainers": [{"name": "own", "resources": value}, value]}}},
]


@given(place=st.sampled_from(PLACES), value=OBJECTS)
def test_whatever_stands_there_is_refused_or_read(place, value):
    odd = spec(**place(value))
    if not problems(odd):
        assert dict(needs_of("m", revision_of(odd, FACTS, "m", {})))["pods"] == 1
