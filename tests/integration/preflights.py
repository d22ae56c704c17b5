"""Preflight without containers: KWOK plays the pods, and a test says how each ends.

A preflight pod on a fake node stays Pending until it carries the annotation REPORT; then it ends with that
text as its termination message and with the exit code of EXIT. A spec whose template has the annotations is
answered at once; otherwise a test ends the pod by hand.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from tests.integration.arena import Arena, Json
from tests.models import LLAMA_8B

REPORT, EXIT = "arena.test/report", "arena.test/exit"
DIGEST = f"sha256:{'5a' * 32}"
ENGINE = "registry.example.com/vllm:1"
PREFLIGHT = {"app.kubernetes.io/component": "preflight"}

_END = f"""
{{{{ $now := Now }}}}
{{{{ $report := index .metadata.annotations "{REPORT}" }}}}
{{{{ $code := index .metadata.annotations "{EXIT}" }}}}
phase: {{{{ if eq $code "0" }}}}Succeeded{{{{ else }}}}Failed{{{{ end }}}}
startTime: {{{{ $now | Quote }}}}
containerStatuses:
{{{{ range .spec.containers }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  imageID: "registry.example.com/vllm@{DIGEST}"
  ready: false
  restartCount: 0
  state:
    terminated:
      exitCode: {{{{ $code }}}}
      reason: {{{{ if eq $code "0" }}}}Completed{{{{ else }}}}Error{{{{ end }}}}
      message: {{{{ $report | Quote }}}}
      startedAt: {{{{ $now | Quote }}}}
      finishedAt: {{{{ $now | Quote }}}}
{{{{ end }}}}
"""


def _stage(name: str, annotation: str, template: str) -> Json:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {
                "matchLabels": PREFLIGHT,
                "matchExpressions": [
                    {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
                    {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
                    {"key": f'.metadata.annotations["{REPORT}"]', "operator": annotation},
                ],
            },
            "weight": 1,
            "next": {"statusTemplate": template},
        },
    }


STAGES = (
    _stage("arena-preflight-held", "DoesNotExist", "phase: Pending\n"),
    _stage("arena-preflight-ends", "Exists", _END),
)


def report(verdict: str = "Ok", *faults: Json, config: Json | None = None, **fields: Any) -> str:
    """What the runtime would tell; of Llama-3.1-8B unless another config is given."""
    packed = base64.b64encode(zlib.compress(json.dumps(config or LLAMA_8B).encode())).decode()
    facts = {"architecture": "LlamaForCausalLM", "supportsPP": True, "config": packed}
    content = {
        "v": 1,
        "verdict": verdict,
        "faults": list(faults),
        "warnings": [],
        "engine": {"vllm": "0.32.0", "python": "3.12.3", "torch": "2.9.0"},
        "plugins": [],
        "facts": facts if verdict != "Broken" else {},
        **fields,
    }
    return json.dumps(content)


def fault(reason: str, blame: str, message: str) -> Json:
    return {"reason": reason, "blame": blame, "message": message}


BROKEN = report("Broken", fault("PluginImportFailed", "plugin", "my_opt: No module named 'x' (my_opt.py:3)"))
OFFLINE = report("Broken", fault("HubUnreachable", "network", "the hub did not answer within 10 s"))


def required(**spec: Any) -> Json:
    """A spec that is proven first and says nothing of config.json."""
    return {
        "model": {"uri": "hf://example/model"},
        "preflight": "Required",
        "engine": {"image": ENGINE},
        **spec,
    }


def pods(arena: Arena, model: str) -> list[Json]:
    """Pods of preflight Jobs that are not on their way out, the newest last.

    A pod whose Job has gone is on its way out too, before the garbage collector has come to it.
    """
    there = {job["metadata"]["uid"] for job in jobs(arena)}
    items = arena.api.get(f"/api/v1/namespaces/{arena.namespace}/pods")["items"]
    mine = [
        pod
        for pod in items
        if "deletionTimestamp" not in pod["metadata"]
        and pod["metadata"].get("labels", {}).get("bowsprit.dev/preflight-of") == model
        and there & {owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())}
    ]
    return sorted(mine, key=lambda pod: int(pod["metadata"]["resourceVersion"]))


def running(arena: Arena, model: str) -> list[Json]:
    return [pod for pod in pods(arena, model) if pod["status"].get("phase") == "Pending"]


def end(arena: Arena, model: str, text: str, code: int = 0) -> None:
    """Lets the preflight that waits end."""
    arena.wait(f"a preflight of {model} to run", lambda: bool(running(arena, model)))
    name = running(arena, model)[-1]["metadata"]["name"]
    arena.kubectl("annotate", "pod", name, f"{REPORT}={text}", f"{EXIT}={code}")


def jobs(arena: Arena) -> list[Json]:
    return list(arena.api.get(f"/apis/batch/v1/namespaces/{arena.namespace}/jobs")["items"])


def reports(arena: Arena) -> list[Json]:
    """ConfigMaps that keep a report."""
    items = arena.api.get(f"/api/v1/namespaces/{arena.namespace}/configmaps")["items"]
    return [item for item in items if "bowsprit.dev/preflight" in (item["metadata"].get("labels") or {})]
