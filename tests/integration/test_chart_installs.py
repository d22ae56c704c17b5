"""The chart on a real control plane, by real Helm.

KWOK plays the operator's pods there, so the operator itself runs beside the cluster: with the arguments of
the chart's Deployment and as the chart's ServiceAccount, hence with the rights that it has at users'.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bowsprit.api.crd import crd_yaml
from bowsprit.cluster import access
from e2e.cluster.control_plane import ControlPlane, KubectlFailed
from e2e.cluster.helm import CHART, RELEASE, HelmFailed, helm, next_version
from e2e.cluster.nodes import cpu_node, create_nodes
from tests.integration.arena import Arena, Json, OperatorProcess
from tests.integration.chart import CRD, render
from tests.integration.chart_values import TABLE
from tests.integration.life import REVISIONS, TWO_PODS, engine, events, target, uids, workloads

pytestmark = pytest.mark.integration

RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
MODELS = {"one": {}, "two": TWO_PODS}
"""A Deployment and a LeaderWorkerSet."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane of this module's own: what the chart makes for the whole cluster is there once only."""
    with ControlPlane() as control_plane:
        create_nodes(control_plane.kubeconfig, [cpu_node("for-the-operator")])
        yield control_plane


class Release:
    """The chart's release in the cluster, and the operator that its pods would run."""

    def __init__(self, cluster: ControlPlane, directory: Path) -> None:
        self.cluster = cluster
        self._directory = directory
        self._operator: OperatorProcess | None = None

    def helm(self, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        place = f"--namespace={access.NAMESPACE}"
        return helm(*arguments, place, values=values, kubeconfig=self.cluster.kubeconfig)

    def install(self, *options: str, values: Mapping[str, Any] | None = None) -> str:
        return self.helm("install", RELEASE, str(CHART), "--wait", *options, values=values)

    def upgrade(self, path: Path = CHART, values: Mapping[str, Any] | None = None) -> str:
        return self.helm("upgrade", RELEASE, str(path), "--wait", values=values)

    def uninstall(self) -> str:
        return self.helm("uninstall", RELEASE, "--wait")

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(f"--namespace={access.NAMESPACE}", *arguments)

    def operate(self) -> OperatorProcess:
        """Runs what the Deployment says, in place of what it said before."""
        self.stop()
        deployment = json.loads(self.kubectl("get", f"deployment/{access.NAME}", "-o", "json"))
        command, *options = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        assert command == "run"
        options = [option.replace("/etc/bowsprit/", f"{self._directory}/") for option in options]
        for name, text in self._products().items():
            (self._directory / name).write_text(text)
        log = self._directory / "operator.log"
        self._operator = OperatorProcess(self._kubeconfig(), log, "operator", access.NAME, *options)
        self._operator.environment = unknown_user(self._directory)
        return self._operator.start()

    def stop(self) -> None:
        if self._operator:
            assert self._operator.stop() == 0
            self._operator = None

    def _products(self) -> dict[str, str]:
        found = self.kubectl("get", f"configmap/{access.NAME}-products", "--ignore-not-found", "-o", "json")
        return dict(json.loads(found)["data"]) if found else {}

    def _kubeconfig(self) -> Path:
        """A pod's own credentials: a token of the chart's ServiceAccount."""
        token = self.kubectl("create", "token", access.NAME, "--duration=1h")
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token.strip()}
        path = self._directory / "operator-kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path


@pytest.fixture
def release(cluster: ControlPlane, tmp_path: Path) -> Iterator[Release]:
    """Nothing is installed yet; the namespace takes restricted pods only."""
    labels = {"kubernetes.io/metadata.name": access.NAMESPACE, **RESTRICTED}
    namespace = {"name": access.NAMESPACE, "labels": labels}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    result = Release(cluster, tmp_path)
    yield result
    result.stop()
    result.helm("uninstall", RELEASE, "--ignore-not-found", "--wait")
    cluster.kubectl("delete", "crd", CRD, "--ignore-not-found")
    cluster.kubectl("delete", "namespace", access.NAMESPACE)


@pytest.fixture
def arena(cluster: ControlPlane, tmp_path: Path) -> Iterator[Arena]:
    """A namespace with GPU nodes, for models. Cleared last, since operators may be on its nodes."""
    name = f"models-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    stage = Arena(cluster, name, tmp_path)
    stage.nodes(2, gpus=4)
    stage.logs.append(tmp_path / "operator.log")
    yield stage
    stage.kubectl("delete", "deployments,leaderworkersets,pods", "--all", "--wait=false")
    cluster.kubectl("delete", "nodes", "-l", f"arena={name}", "--wait=false")
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def serving(arena: Arena, release: Release) -> Arena:
    """The chart is installed, and models run."""
    release.install()
    release.operate()
    for name, spec in MODELS.items():
        arena.model(name, **spec)
    arena.wait_ready(*MODELS)
    return arena


def test_the_charts_rights_suffice_for_the_whole_life_of_a_model(
    serving: Arena, release: Release, tmp_path: Path
) -> None:
    for name in MODELS:
        serving.patch(name, {"replicas": 2})
    serving.wait_ready(*MODELS)
    old = {name: target(serving, name) for name in MODELS}
    for name in MODELS:
        serving.patch(name, {"engine": engine("--max-num-seqs=7"), "replicas": 1})
    serving.wait("new revisions", lambda: all(target(serving, name) != old[name] for name in MODELS))
    serving.wait_ready(*MODELS)
    serving.patch("one", {"suspend": True})
    serving.wait("the suspended model to be gone", lambda: not serving.pods("one"))
    assert events(serving, "two")
    serving.kubectl("delete", "mdep", "--all")
    serving.wait("all to be gone", lambda: not leftovers(serving), seconds=90)
    log = (tmp_path / "operator.log").read_text()
    assert "lease.acquired" in log
    assert "forbidden" not in log.lower()


def test_nobody_reads_secrets_and_editors_may_edit_models(arena: Arena, release: Release) -> None:
    release.install()
    who = f"--as=system:serviceaccount:{access.NAMESPACE}:{access.NAME}"
    for verb in ("get", "list", "watch"):
        assert not may(release, who, verb, "secrets", "--all-namespaces")
    for role in ("view", "edit"):
        arena.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}or")
    here = f"--namespace={arena.namespace}"
    arena.wait("editors to have rights", lambda: may(release, "--as=editor", "create", "mdep", here))
    assert may(release, "--as=editor", "patch", "mdep/one", here, "--subresource=scale")
    assert not may(release, "--as=editor", "patch", "mdep/one", here, "--subresource=status")
    assert may(release, "--as=viewor", "get", "mdep", here)
    assert not may(release, "--as=viewor", "create", "mdep", here)


@pytest.mark.parametrize("case", TABLE)
def test_the_api_server_takes_all_of_it_without_a_warning(
    release: Release, case: str, tmp_path: Path
) -> None:
    """Unknown fields are errors, and pods that are not restricted a warning, hence an error too."""
    rendered = tmp_path / "rendered.yaml"
    rendered.write_text(yaml.safe_dump_all(render(TABLE[case])))
    options = ("--dry-run=server", "--validate=strict", "--warnings-as-errors")
    assert "created (server dry run)" in release.kubectl("apply", *options, "-f", str(rendered))


def test_an_upgrade_of_operator_and_crd_restarts_no_engine(
    serving: Arena, release: Release, tmp_path: Path
) -> None:
    before = engines(serving)
    release.upgrade(next_version(tmp_path), values=TABLE["everything that may be on is on"])
    release.operate()
    serving.wait("the new CRD to be served", lambda: keeps_new_field(serving))
    serving.patch("one", {"replicas": 2})
    serving.wait("a second replica", lambda: len(serving.pods("one")) == 2)
    serving.wait_ready(*MODELS)
    assert engines(serving).items() >= before.items()

    before = engines(serving)
    release.helm("rollback", RELEASE, "1", "--wait")
    release.operate()
    serving.wait("the old CRD to be served", lambda: not keeps_new_field(serving))
    serving.patch("two", {"replicas": 2})
    serving.wait("a second group", lambda: len(serving.pods("two")) == 4)
    serving.wait_ready(*MODELS)
    assert engines(serving).items() >= before.items()


def test_models_outlive_the_release_and_the_next_one_takes_them_over(
    serving: Arena, release: Release
) -> None:
    before = engines(serving)
    release.stop()
    said = release.uninstall()
    assert f"kept due to the resource policy:\n[CustomResourceDefinition] {CRD}" in said
    assert serving.is_ready("one")
    release.install()
    release.operate()
    serving.patch("one", {"replicas": 2})
    serving.wait("a second replica", lambda: len(serving.pods("one")) == 2)
    serving.wait_ready(*MODELS)
    assert engines(serving).items() >= before.items()


def test_models_go_with_the_release_when_the_crd_is_not_kept(serving: Arena, release: Release) -> None:
    release.upgrade(values={"crds": {"keep": False}})
    release.stop()
    assert "kept" not in release.uninstall()
    serving.wait("models and all that is theirs to be gone", lambda: not leftovers(serving), seconds=120)
    assert not release.kubectl("get", "crd", CRD, "--ignore-not-found")


def test_a_crd_that_kubectl_installed_is_taken_over_when_asked(
    arena: Arena, release: Release, cluster: ControlPlane
) -> None:
    cluster.install_definition(crd_yaml())
    arena.model("one")
    with pytest.raises(HelmFailed, match="invalid ownership metadata"):
        release.install()
    release.install("--take-ownership")
    release.operate()
    arena.wait_ready("one")


def test_a_second_operator_in_the_cluster_is_refused(arena: Arena, release: Release) -> None:
    release.install(values={"crds": {"enabled": False}})
    with pytest.raises(HelmFailed, match=f'ClusterRole "{access.NAME}" .* exists and cannot be imported'):
        helm(
            "install",
            "second",
            str(CHART),
            f"--namespace={arena.namespace}",
            "--set=crds.enabled=false",
            kubeconfig=release.cluster.kubeconfig,
        )


def test_the_notes_say_what_comes_next_and_what_is_missing(release: Release) -> None:
    said = release.install(values={"crds": {"keep": False}})
    assert f"kubectl -n {access.NAMESPACE} rollout status deployment/{access.NAME}" in said
    assert "LeaderWorkerSet is not installed" not in said
    assert "`helm uninstall` will delete the CRD, every ModelDeployment" in said


def unknown_user(directory: Path) -> dict[str, str]:
    """The environment of a process whose user stands in no passwd file, as in the operator's image."""
    (directory / "sitecustomize.py").write_text("import pwd\npwd.getpwuid = {}.__getitem__\n")
    names = {"USER", "LOGNAME", "LNAME", "USERNAME"}
    kept = {name: value for name, value in os.environ.items() if name not in names}
    path = [str(directory), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "HOME": "/", "PYTHONPATH": os.pathsep.join(path)}


def may(release: Release, *question: str) -> bool:
    """What `kubectl auth can-i` answers."""
    who, *rest = question
    try:
        return release.cluster.kubectl("auth", "can-i", *rest, who).strip() == "yes"
    except KubectlFailed:  # its exit code for no
        return False


def engines(arena: Arena) -> dict[str, str]:
    """The models of the engine pods, by uid."""
    return {uid: model for model in MODELS for uid in uids(arena, model)}


def leftovers(arena: Arena) -> list[Json]:
    """What is still there of models, if only on its way out."""
    items = [each for model in MODELS for each in workloads(arena, model).values()]
    for path in (REVISIONS, "/api/v1/namespaces/{}/pods", "/api/v1/namespaces/{}/services"):
        items += arena.api.get(path.format(arena.namespace))["items"]
    return items


def keeps_new_field(arena: Arena) -> bool:
    """Whether the API server knows the field of the version to come."""
    patch = json.dumps({"spec": {"newField": "x"}})
    options = ("--type=merge", "--dry-run=server", "-o", "json", "-p", patch)
    return "newField" in json.loads(arena.kubectl("patch", "mdep", "one", *options))["spec"]
