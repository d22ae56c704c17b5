"""Pods of a preflight Job as kubelets report them."""

from __future__ import annotations

import json
from typing import Any

OF_A_NEWER_RUNTIME = "PluginIsTooNew"
"""A reason that this operator does not know; it is passed on."""

DIGEST = f"sha256:{'ab' * 32}"
ENGINE = "vllm/vllm-openai:v0.32.0"
PLUGIN = "registry.example.com/my-opt:1.0"
INIT = {"runtime": "registry.example.com/runtime:1", "plugin-0": PLUGIN, "install-plugins": ENGINE}


def report(verdict: str = "Ok", *faults: dict[str, str], **fields: Any) -> str:
    """What a container leaves behind."""
    content = {
        "v": 1,
        "verdict": verdict,
        "faults": list(faults),
        "warnings": [],
        "engine": {"vllm": "0.32.0", "python": "3.12.3", "torch": "2.9.0"},
        "plugins": [
            {
                "name": "my-opt",
                "version": "1.0",
                "entryPoints": ["my_opt"],
                "architectures": ["MyOptForCausalLM"],
                "more": 0,
            }
        ],
        "facts": {"architecture": "MyOptForCausalLM"},
        **fields,
    }
    return json.dumps(content)


def fault(reason: str, blame: str, message: str) -> dict[str, str]:
    return {"reason": reason, "blame": blame, "message": message}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def ended(code: int, message: str = "", reason: str = "") -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": code,
            "message": message,
            "reason": reason or ("Error" if code else "Completed"),
        }
    }


DONE = ended(0)
RUNNING: dict[str, Any] = {"running": {"startedAt": "2026-11-30T12:00:00Z"}}


def pod(
    phase: str, /, engine: dict[str, Any] | None = None, *, status: Any = None, **init: Any
) -> dict[str, Any]:
    """The states of its containers by name; those that are not named are done when the pod runs."""
    named = {name.replace("_", "-"): state for name, state in init.items()}
    states = {name: named.get(name, DONE) for name in INIT}

    def container_status(name: str, image: str, state: dict[str, Any]) -> dict[str, Any]:
        has_run = "waiting" not in state
        image_id = f"{image.partition(':')[0]}@{DIGEST}" if has_run else ""
        return {"name": name, "state": state, "image": image, "imageID": image_id}

    return {
        "metadata": {
            "name": "llama-preflight-0123456789-abcde",
            "namespace": "chat",
            "uid": "uid-pod",
            "creationTimestamp": "2026-11-30T12:00:00Z",
            "labels": {"bowsprit.dev/preflight": "0123456789", "bowsprit.dev/preflight-of": "llama"},
            "ownerReferences": [{"kind": "Job", "uid": "uid-job", "controller": True}],
        },
        "spec": {
            "initContainers": [{"name": name, "image": image} for name, image in INIT.items()],
            "containers": [{"name": "engine", "image": ENGINE}],
        },
        "status": {
            "phase": phase,
            "initContainerStatuses": [
                container_status(name, INIT[name], state) for name, state in states.items()
            ],
            "containerStatuses": [container_status("engine", ENGINE, engine or waiting("PodInitializing"))],
            **(status or {}),
        },
    }


BROKEN = report(
    "Broken", fault("PluginImportFailed", "plugin", "my_opt: ModuleNotFoundError: No module named 'x'")
)
OFFLINE = report("Broken", fault("HubUnreachable", "network", "the hub did not answer within 10 s"))
NOT_FOUND = 'failed to pull and unpack image "vllm/vllm-openai:v0.32.0": not found'

PODS: dict[str, dict[str, Any]] = {
    "created": pod("Pending", status={"initContainerStatuses": [], "containerStatuses": []}),
    "a plugin image does not exist": pod(
        "Pending", plugin_0=waiting("ErrImagePull", NOT_FOUND), install_plugins=waiting("PodInitializing")
    ),
    "the same, between two tries": pod(
        "Pending",
        plugin_0=waiting("ImagePullBackOff", f'Back-off pulling image "{PLUGIN}": ErrImagePull: {NOT_FOUND}'),
        install_plugins=waiting("PodInitializing"),
    ),
    "the token's Secret is missing": pod(
        "Pending", waiting("CreateContainerConfigError", 'secret "hf-token" not found')
    ),
    "no node takes it": pod(
        "Pending",
        status={
            "initContainerStatuses": [],
            "containerStatuses": [],
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/3 nodes are available: 3 node(s) had untolerated taint {team: b}.",
                }
            ],
        },
    ),
    "running": pod("Running", RUNNING),
    "fine": pod("Succeeded", ended(0, report())),
    "fine, with warnings": pod(
        "Succeeded", ended(0, report("Warnings", warnings=["my-opt asks for torch<2.9; the image has 2.9.0"]))
    ),
    "not to be judged": pod(
        "Succeeded",
        ended(0, report("Unjudged", fault("NeedsFile", "model", "MyOpt.__init__ opens /data/table.bin"))),
    ),
    "a broken plugin": pod("Failed", ended(1, BROKEN)),
    "two faults": pod(
        "Failed",
        ended(
            1,
            report(
                "Broken",
                fault("EntryPointMissing", "spec", "my-opt has no entry point 'opt'; did you mean my_opt?"),
                fault("PluginDependencyMissing", "plugin", "my-opt asks for einops"),
            ),
        ),
    ),
    "a reason of a newer runtime": pod(
        "Failed", ended(1, report("Broken", fault(OF_A_NEWER_RUNTIME, "plugin", "made tomorrow")))
    ),
    "nothing to install": pod(
        "Failed",
        waiting("PodInitializing"),
        install_plugins=ended(
            1, report("Broken", fault("PluginHasNoWheels", "plugin", f"{PLUGIN} holds no wheel in /plugins"))
        ),
    ),
    "a plugin image without its folder": pod(
        "Failed",
        waiting("PodInitializing"),
        plugin_0=ended(1, "cp: can't stat '/plugins/.': No such file or directory\n"),
        install_plugins=waiting("PodInitializing"),
    ),
    "the hub does not answer": pod("Failed", ended(75, OFFLINE)),
    "killed for its memory": pod("Failed", ended(137, "", "OOMKilled")),
    "it hangs": pod(
        "Failed",
        ended(137, "", "Error"),
        status={"reason": "DeadlineExceeded", "message": "Pod was active longer than the deadline"},
    ),
    "a crash": pod("Failed", ended(139, "Fatal Python error: Segmentation fault\n\nThread 0x1")),
    "a report that is none": pod("Failed", ended(1, '{"v": 1, "verdict": "Broken", "faults": []}')),
    "evicted": pod(
        "Failed",
        waiting("PodInitializing"),
        install_plugins=waiting("PodInitializing"),
        status={"reason": "Evicted", "message": "The node was low on resource: memory."},
    ),
}  # fmt: skip
