from __future__ import annotations

import re

import pytest

from bowsprit.api.v1alpha1 import NAME_MAX
from bowsprit.plan.result import Layout
from bowsprit.render import labels
from bowsprit.render.names import workload_name
from bowsprit.render.revision import to_controller_revision
from bowsprit.render.services import services
from bowsprit.render.workload import workload
from tests.unit.render.examples import A100, FIVE_PODS, LAYOUTS, ONE_GPU, OWNER, revision

LONGEST = "m" * NAME_MAX
HASH = "0123456789"
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

WIDEST = Layout("P" * 63, tensor=64, pipeline=1024, gpus_per_pod=64, layer_partition=(1,) * 1024)
LAST_GROUP = 9_999
LAST_WORKER = 1_023

# What Kubernetes and LeaderWorkerSet derive from the name of a workload.
DERIVED = {
    "the leader pod": "{workload}-{group}",
    "the last worker pod": "{workload}-{group}-{worker}",
    "the revision label of a leader pod (StatefulSet)": "{workload}-4294967295",
    "the revision label of a worker pod (StatefulSet)": "{workload}-{group}-4294967295",
    "a ReplicaSet": "{workload}-6d4cf56db6",
}


@pytest.mark.parametrize("what", DERIVED)
@pytest.mark.parametrize("name", [LONGEST, "a", "a" * 37 + "---", "a-" * 19 + "b"])
def test_a_name_of_forty_characters_leaves_room_for(what: str, name: str) -> None:
    derived = DERIVED[what].format(
        workload=workload_name(name, HASH, WIDEST), group=LAST_GROUP, worker=LAST_WORKER
    )
    assert DNS_LABEL.fullmatch(derived)


def test_labels_are_valid_however_wide_the_layout() -> None:
    for value in labels.workload_labels(LONGEST, HASH, WIDEST).values():
        assert LABEL_VALUE.fullmatch(value)


def test_models_that_share_the_part_of_the_name_that_is_kept_have_workloads_of_their_own() -> None:
    assert workload_name(LONGEST, HASH, ONE_GPU) != workload_name(LONGEST[:-1] + "n", HASH, ONE_GPU)


def test_every_revision_and_layout_has_a_workload_of_its_own() -> None:
    other_product = Layout("other", 1, 1, 1, (80,))
    other_split = Layout(A100, 1, 5, 1, (17, 16, 16, 16, 15))
    other_pods = Layout(A100, 1, 4, 2, (20, 20, 20, 20))
    layouts = [*LAYOUTS, other_product, other_split, other_pods, WIDEST]
    assert len({workload_name("llama", each, layout) for each in ("a", "b") for layout in layouts}) == 16
    assert len({labels.layout_key(layout) for layout in layouts}) == 8


def test_the_service_is_named_like_the_model() -> None:
    (service,) = services(OWNER, HASH)
    assert service["metadata"]["name"] == "llama"


def test_every_child_names_its_model_as_the_controlling_owner() -> None:
    what = revision()
    children = [
        to_controller_revision(what, OWNER),
        *services(OWNER, what.hash),
        *(workload(OWNER, what, layout, 1) for layout in (ONE_GPU, FIVE_PODS)),
    ]
    for child in children:
        assert child["metadata"]["namespace"] == OWNER.namespace
        assert child["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "bowsprit.dev/v1alpha1",
                "kind": "ModelDeployment",
                "name": "llama",
                "uid": OWNER.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert child["metadata"]["labels"]["bowsprit.dev/model"] == "llama"
        assert child["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "bowsprit"
