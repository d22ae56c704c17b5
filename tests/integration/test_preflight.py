"""Preflight on a real control plane: real Jobs and pods, whose ends a test decides (preflights.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.control_plane import ControlPlane
from tests.integration import preflights
from tests.integration.arena import Arena
from tests.integration.life import events, revisions
from tests.integration.preflights import (
    BROKEN,
    DIGEST,
    OFFLINE,
    end,
    fault,
    jobs,
    report,
    reports,
    required,
    running,
)
from tests.models import LLAMA_8B


@pytest.fixture(scope="module", autouse=True)
def _stages(api_installed: ControlPlane) -> None:
    for stage in preflights.STAGES:
        api_installed.apply(stage)


def test_a_model_is_planned_from_what_preflight_reported_and_runs_what_it_ran(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.apply(stage.manifest("llama", **required()))
    stage.wait_reason("llama", "PluginVerified", "PreflightRunning")
    stage.wait("preflight to run", lambda: bool(running(stage, "llama")))
    assert stage.pods("llama") == [], "no serving pod before the verdict"
    end(stage, "llama", report())
    stage.wait_ready("llama")
    assert stage.condition("llama", "PluginVerified")["reason"] == "Verified"
    (pod,) = stage.pods("llama")
    assert pod["spec"]["containers"][0]["image"] == f"registry.example.com/vllm@{DIGEST}"
    stage.wait("the Job to be cleared away", lambda: not jobs(stage))
    (kept,) = reports(stage)
    assert kept["immutable"] is True
    assert kept["metadata"]["ownerReferences"][0]["kind"] == "ModelDeployment"
    assert json.loads(kept["data"]["report.json"])["verdict"] == "Ok"
    assert "Verified" in {event["reason"] for event in events(stage, "llama")}


def test_a_broken_plugin_stalls_before_any_gpu_is_taken_and_a_change_is_proven_at_once(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    plugins = [{"image": "registry.example.com/my-opt:1"}]
    stage.apply(stage.manifest("llama", **required(plugins=plugins)))
    end(stage, "llama", BROKEN, 1)
    told = stage.wait_reason("llama", "Stalled", "PluginImportFailed")
    assert told["status"] == "True"
    assert "The plugin is at fault: my_opt: No module named 'x'" in told["message"]
    stage.wait("the Job to be cleared away", lambda: not jobs(stage))
    assert stage.pods("llama") == []
    assert stage.status("llama")["phase"] == "Failed"
    stage.patch("llama", {"plugins": [{"image": "registry.example.com/my-opt:2"}]})
    end(stage, "llama", report())
    stage.wait_ready("llama")


def serving_beside_a_broken_spec(stage: Arena) -> dict[str, Any]:
    """The pod that serves the last spec that was proven."""
    stage.apply(stage.manifest("llama", **required()))
    end(stage, "llama", report())
    stage.wait_ready("llama")
    (pod,) = stage.pods("llama")
    stage.patch("llama", {"architecture": {"override": "MyOptForCausalLM"}})
    end(stage, "llama", BROKEN, 1)
    stage.wait_reason("llama", "Stalled", "PluginImportFailed")
    return pod


def test_a_broken_spec_leaves_the_serving_revision_alone(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    before = serving_beside_a_broken_spec(stage)
    (after,) = stage.pods("llama")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert stage.condition("llama", "Available")["status"] == "True"
    stage.patch("llama", {"architecture": None})
    stage.wait_ready("llama")
    assert [pod["metadata"]["uid"] for pod in stage.pods("llama")] == [before["metadata"]["uid"]]
    assert not jobs(stage), "what was proven once is not proven again"


def test_what_serves_is_kept_right_and_scaled_while_the_new_spec_is_broken(stage: Arena) -> None:
    stage.nodes(2, gpus=1)
    before = serving_beside_a_broken_spec(stage)
    stage.kubectl("delete", "pod", before["metadata"]["name"], "--wait=false")
    stage.wait(
        "another pod to serve in its place",
        lambda: (
            stage.status("llama").get("readyReplicas") == 1
            and before["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in stage.pods("llama")}
        ),
    )
    stage.patch("llama", {"replicas": 2})
    stage.wait("two replicas", lambda: stage.status("llama").get("readyReplicas") == 2)
    assert len(revisions(stage, "llama")) == 1
    assert stage.condition("llama", "Ready")["status"] == "False"
    assert stage.condition("llama", "Stalled")["reason"] == "PluginImportFailed"
    assert len(stage.status("llama")["plan"]["replicas"]) == 2, "promises are written for the next operator"


def test_what_was_never_proven_serves_on_without_its_config_while_its_successor_is_proven(
    stage: Arena,
) -> None:
    """A pod that dies, another replica and a lost node, by nothing but what the revision keeps."""
    stage.nodes(3, gpus=1)
    stage.model("llama")
    stage.wait_ready("llama")
    (before,) = stage.pods("llama")
    stage.kubectl("delete", "configmap", "llama-config")
    stage.wait_reason("llama", "Ready", "ModelConfigMissing")
    stage.patch("llama", {"preflight": "Required", "engine": {"args": ["--enforce-eager"]}})
    stage.wait("preflight to run", lambda: bool(running(stage, "llama")))
    stage.kubectl("delete", "pod", before["metadata"]["name"], "--wait=false")
    stage.wait("another pod to serve", lambda: serves(stage, 1, without=before))
    stage.patch("llama", {"replicas": 2})
    stage.wait("two replicas", lambda: serves(stage, 2, without=before))
    proving = {pod["spec"]["nodeName"] for pod in running(stage, "llama")}
    lost = next(pod for pod in stage.pods("llama") if pod["spec"]["nodeName"] not in proving)
    stage.delete_node(lost["spec"]["nodeName"])
    stage.wait("two replicas on the nodes that are left", lambda: serves(stage, 2, without=lost))
    assert len(revisions(stage, "llama")) == 1
    end(stage, "llama", report())
    stage.wait_ready("llama")
    assert len(revisions(stage, "llama")) == 2


def serves(stage: Arena, replicas: int, *, without: dict[str, Any]) -> bool:
    """So many replicas are ready, and a pod is not among theirs."""
    there = {pod["metadata"]["uid"] for pod in stage.pods("llama")}
    return stage.status("llama").get("readyReplicas") == replicas and without["metadata"]["uid"] not in there


def test_a_report_that_ends_differently_rolls_nothing(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.apply(stage.manifest("llama", **required()))
    end(stage, "llama", report())
    stage.wait_ready("llama")
    (before,) = stage.pods("llama")
    (kept,) = reports(stage)
    stage.kubectl("delete", "configmap", kept["metadata"]["name"])
    stage.wait_reason("llama", "PluginVerified", "PreflightRunning")
    end(stage, "llama", report(config={**LLAMA_8B, "rope_theta": 1}))
    stage.wait_ready("llama")
    assert [pod["metadata"]["uid"] for pod in stage.pods("llama")] == [before["metadata"]["uid"]]
    assert len(revisions(stage, "llama")) == 1


def test_a_spec_that_changes_while_its_preflight_runs_is_what_is_proven(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.apply(stage.manifest("llama", **required()))
    stage.wait("preflight to run", lambda: bool(running(stage, "llama")))
    (first,) = jobs(stage)
    stage.patch("llama", {"architecture": {"override": "MyOptForCausalLM"}})

    def successors() -> list[str]:
        return [uid for job in jobs(stage) if (uid := job["metadata"]["uid"]) != first["metadata"]["uid"]]

    stage.wait("the new spec's Job alone", lambda: len(successors()) == len(jobs(stage)) == 1)
    end(stage, "llama", report(config={**LLAMA_8B, "architectures": ["MyOptForCausalLM"]}))
    stage.wait_ready("llama")
    assert stage.status("llama")["architecture"] == "MyOptForCausalLM"


def test_a_network_fault_is_named_and_tried_again(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.apply(stage.manifest("llama", **required()))
    end(stage, "llama", OFFLINE, 75)
    told = stage.wait_reason("llama", "PluginVerified", "HubUnreachable")
    assert told["status"] == "Unknown"
    assert stage.condition("llama", "Stalled")["status"] == "False"
    assert not reports(stage), "it is no verdict"
    end(stage, "llama", report())
    stage.wait_ready("llama")


def test_a_crash_for_good_names_the_job_and_deleting_that_tries_again(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.apply(stage.manifest("llama", **required()))
    end(stage, "llama", "Killed", 137)
    told = stage.wait_reason("llama", "Stalled", "PreflightCrashed")
    (job,) = jobs(stage)
    name = job["metadata"]["name"]
    assert f"kubectl delete job {name}" in told["message"]
    stage.kubectl("delete", "job", name)
    end(stage, "llama", report())
    stage.wait_ready("llama")


def test_where_no_node_takes_it_the_schedulers_words_are_told(stage: Arena) -> None:
    machine = {"nodeSelector": {"kubernetes.io/arch": "riscv64"}}
    stage.nodes(1)
    stage.apply(stage.manifest("llama", **required(accelerator=machine)))
    told = stage.wait_reason("llama", "PluginVerified", "PreflightUnschedulable")
    assert "available" in told["message"]
    assert stage.condition("llama", "Stalled")["status"] == "False"


def test_unjudged_blocks_nothing_and_what_it_could_not_tell_comes_from_the_users_config(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    lack = fault("NeedsFile", "model", "MyOpt.__init__ opens /data/table.bin")
    text = report("Unjudged", lack, facts={"architecture": "MyOpt"})
    stage.model("llama", **{**required(), "model": {"uri": "hf://a/b"}})
    end(stage, "llama", text)
    told = stage.wait_reason("llama", "PluginVerified", "Unjudged")
    assert "/data/table.bin" in told["message"]
    stage.wait_reason("llama", "Ready", "ModelConfigMissing")
    stage.patch("llama", {"model": {"uri": "hf://a/b", "config": {"configMapRef": {"name": "llama-config"}}}})
    stage.wait_ready("llama")


def test_an_operator_killed_at_any_moment_of_preflight_goes_on(arena: Arena) -> None:
    arena.nodes(1, gpus=1)
    operator = arena.operator("operator-a", "--resync=5")
    arena.apply(arena.manifest("llama", **required()))
    arena.wait("preflight to run", lambda: bool(running(arena, "llama")))
    operator.kill()
    end(arena, "llama", report())
    operator.start()
    arena.wait_ready("llama")
    arena.wait("the Job to be cleared away", lambda: not jobs(arena))
    operator.kill()
    arena.patch("llama", {"engine": {"image": "registry.example.com/vllm:2"}})
    operator.start()
    arena.wait("the next preflight to run", lambda: bool(running(arena, "llama")))
    assert len(revisions(arena, "llama")) == 1


def test_a_deleted_model_leaves_nothing(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.apply(stage.manifest("done", **required()), stage.manifest("running", **required()))
    end(stage, "done", report())
    stage.wait_ready("done")
    stage.wait("the other to run", lambda: bool(running(stage, "running")))
    stage.kubectl("delete", "mdep", "done", "running", "--wait=false")
    stage.wait(
        "all to be gone", lambda: not jobs(stage) and not reports(stage) and not running(stage, "running")
    )


def test_quota_that_refuses_the_pod_is_told(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "small"},
            "spec": {"hard": {"requests.cpu": "100m"}},
        }
    )
    stage.apply(stage.manifest("llama", **required()))
    told = stage.wait_reason("llama", "Ready", "ApplyFailed")
    assert "exceeded quota" in told["message"]
    stage.kubectl(
        "patch", "quota", "small", "--type=merge", "-p", '{"spec": {"hard": {"requests.cpu": "100"}}}'
    )
    end(stage, "llama", report())
    stage.wait_ready("llama")


def test_by_hand_without_an_operator_and_with_nothing_left_behind(arena: Arena, tmp_path: Path) -> None:
    arena.nodes(1)
    file = tmp_path / "model.json"
    file.write_text(json.dumps(arena.manifest("llama", **required())))
    command = [sys.executable, "-m", "bowsprit.cli.main", "preflight", "-f", str(file)]
    env = {**os.environ, "KUBECONFIG": str(arena.cluster.kubeconfig)}
    with subprocess.Popen(
        command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        end(arena, "llama", BROKEN, 1)
        said, notes = process.communicate(timeout=60)
    assert process.returncode == 3, notes
    assert f"{arena.namespace}/llama: Broken" in said
    assert "PluginImportFailed (plugin): my_opt: No module named 'x'" in said
    arena.wait("nothing to be left", lambda: not jobs(arena) and not preflights.pods(arena, "llama"))
    assert not reports(arena)
