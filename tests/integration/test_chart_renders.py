"""What the chart makes of its values, by Helm itself."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from bowsprit.api.crd import crd
from bowsprit.cli.main import app
from bowsprit.cluster import access
from docs.generators import chart
from e2e.cluster.helm import CHART, HelmFailed, helm
from tests.integration.chart import Json, of_kind, operator_pod, render, template
from tests.integration.chart_values import CHANGES, DIGEST, MONITORED, REFUSED, TABLE

pytestmark = pytest.mark.integration

CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
OPTIONS = {option for param in typer.main.get_command(app).commands["run"].params for option in param.opts}

ALL = {**TABLE, "a ServiceMonitor": MONITORED}


@pytest.fixture(params=ALL)
def objects(request: pytest.FixtureRequest) -> list[Json]:
    """The objects of each row of the table."""
    return render(ALL[request.param])


def test_helm_lint_has_nothing_to_say() -> None:
    said = helm("lint", "--strict", str(CHART))
    assert "1 chart(s) linted, 0 chart(s) failed" in said
    assert "[WARNING]" not in said


def test_no_role_is_about_secrets_or_about_everything(objects: list[Json]) -> None:
    rules = [
        rule for kind in ("Role", "ClusterRole") for role in of_kind(objects, kind) for rule in role["rules"]
    ]
    assert rules
    for rule in rules:
        words = {word for words in rule.values() for word in words}
        assert not words & {"secrets", "*"}, rule


def test_the_operator_has_the_rights_of_the_code_and_no_others(objects: list[Json]) -> None:
    asked = {each["kind"]: each["rules"] for each in access.manifests() if "rules" in each}
    (account,) = {subject["name"] for each in objects for subject in each.get("subjects", ())}
    assert operator_pod(objects)["spec"]["serviceAccountName"] == account
    for kind in ("Role", "ClusterRole"):
        (binding,) = of_kind(objects, f"{kind}Binding")
        (role,) = (
            each for each in of_kind(objects, kind) if each["metadata"]["name"] == binding["roleRef"]["name"]
        )
        assert role["rules"] == asked[kind]


def test_pods_fit_the_restricted_standard(objects: list[Json]) -> None:
    spec = operator_pod(objects)["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    for container in containers(spec):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True


def test_containers_state_requests_and_limits_and_how_their_health_shows(objects: list[Json]) -> None:
    for container in containers(operator_pod(objects)["spec"]):
        for kind in ("requests", "limits"):
            assert container["resources"][kind].keys() == {"cpu", "memory"}
        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}


def test_bowsprit_run_has_every_option(objects: list[Json]) -> None:
    (container,) = containers(operator_pod(objects)["spec"])
    command, *options = container["args"]
    assert command == "run"
    assert {option.partition("=")[0] for option in options} <= OPTIONS


def test_selectors_select_the_operators_pods(objects: list[Json]) -> None:
    labels = operator_pod(objects)["metadata"]["labels"]
    for selector in selectors(objects):
        assert selector
        assert selector.items() <= labels.items()
    for monitor in of_kind(objects, "ServiceMonitor"):
        (service,) = of_kind(objects, "Service")
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


def test_objects_are_named_once_labelled_and_in_the_namespace_of_the_release(objects: list[Json]) -> None:
    names = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(names) == len(set(names))
    for each in objects:
        wide = each["kind"] in CLUSTER_WIDE
        assert each["metadata"].get("namespace") == (None if wide else "bowsprit-system"), each["metadata"]
        assert each["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_the_crd_is_that_of_the_code_and_kept_unless_said_otherwise() -> None:
    (kept,) = of_kind(render({}), "CustomResourceDefinition")
    assert kept["spec"] == crd()["spec"]
    assert kept["metadata"]["name"] == crd()["metadata"]["name"]
    assert kept["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    (gone,) = of_kind(render({"crds": {"keep": False}}), "CustomResourceDefinition")
    assert "annotations" not in gone["metadata"]
    assert of_kind(render({"crds": {"enabled": False}}), "CustomResourceDefinition") == []


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        pytest.param({}, "bowsprit/operator:v0.1.0", id="the tag is the operator's version"),
        pytest.param({"tag": "1.2"}, "bowsprit/operator:1.2", id="a tag of the user's own"),
        pytest.param({"tag": "1.2", "digest": DIGEST}, f"bowsprit/operator@{DIGEST}", id="a digest wins"),
    ],
)
def test_the_image_is_named(image: Json, reference: str) -> None:
    (container,) = containers(operator_pod(render({"image": image}))["spec"])
    assert container["image"] == reference


def test_other_products_restart_the_operator_which_reads_them_once() -> None:
    one, other = (
        operator_pod(render({"products": [{"nodeSelector": {"a": value}}]})) for value in ("x", "z")
    )
    assert one["metadata"]["annotations"] != other["metadata"]["annotations"]


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses(case: str) -> None:
    values, word = REFUSED[case]
    with pytest.raises(HelmFailed) as refused:
        render(values)
    assert word in str(refused.value)


def test_each_value_is_changed_in_the_next_test() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert CHANGES.keys() == {path for path, value in chart.leaves(schema) if "default" in value}


@pytest.mark.parametrize("path", CHANGES)
def test_a_value_changes_what_is_rendered(path: str) -> None:
    value, beside = CHANGES[path]
    assert template(changed(beside, path, value)) != template(beside)


def test_a_chart_that_depends_on_it_may_switch_it_off_and_hand_values_down(tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(CHART, parent / "charts" / "bowsprit")
    depends = [{"name": "bowsprit", "version": "0.1.0", "condition": "bowsprit.enabled"}]
    about = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": depends}
    (parent / "Chart.yaml").write_text(yaml.safe_dump(about))
    values: Json = {"global": {"imageRegistry": "x"}, "bowsprit": {"enabled": True, "replicaCount": 1}}
    (deployment,) = of_kind(render(values, path=parent), "Deployment")
    assert deployment["spec"]["replicas"] == 1
    values["bowsprit"]["enabled"] = False
    assert render(values, path=parent) == []


def containers(spec: Json) -> list[Json]:
    return [*spec.get("initContainers", ()), *spec["containers"]]


def selectors(objects: list[Json]) -> Iterator[Mapping[str, str]]:
    """Of everything that is about the operator's pods."""
    for each in objects:
        spec = each.get("spec", {})
        if each["kind"] in ("Deployment", "PodDisruptionBudget"):
            yield spec["selector"]["matchLabels"]
        elif each["kind"] == "NetworkPolicy":
            yield spec["podSelector"]["matchLabels"]
        elif each["kind"] == "Service":
            yield spec["selector"]


def changed(values: Mapping[str, Any], path: str, value: Any) -> Json:
    """The values, with another one at a path."""
    result = copy.deepcopy(dict(values))
    inner = result
    *above, last = path.split(".")
    for name in above:
        inner = inner.setdefault(name, {})
    inner[last] = value
    return result
