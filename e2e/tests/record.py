"""What happened to a model and its pods, from watches: a look now and then would miss what lasts a moment.

All versions are of one data store, so the order of their resourceVersions is the order in which they were
written, whichever watch they came by.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from e2e.tests.stage import Stage

Json = dict[str, Any]


class Version(NamedTuple):
    number: int
    gone: bool
    content: Json

    @property
    def name(self) -> str:
        return str(self.content["metadata"]["name"])


class Record:
    """The versions of the models and pods of a namespace, from the beginning of the watches on."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._versions: list[Version] = []

    def follow(self, watch: subprocess.Popen[str]) -> None:
        assert watch.stdout is not None
        for line in watch.stdout:
            event = json.loads(line)
            number = int(event["object"]["metadata"]["resourceVersion"])
            self._versions.append(Version(number, event["type"] == "DELETED", event["object"]))

    def catch_up(self, model: str) -> None:
        """Waits until the watches have shown what the model is now."""
        now = int(self._stage.get("mdep", model)["metadata"]["resourceVersion"])
        self._stage.wait("the watches", lambda: any(each.number >= now for each in self._of_model(model)))

    def conditions(self, model: str) -> list[Json]:
        """What Ready was, version by version."""
        return [_ready(each.content) for each in self._of_model(model)]

    def messages(self, model: str) -> str:
        """What Ready said in all this time."""
        return "\n".join(dict.fromkeys(str(each.get("message")) for each in self.conditions(model)))

    def assert_not_ready_while_a_rank_is_away(self, model: str, ranks: int) -> None:
        """No version that says Ready was written while a rank was ending, starting or not there."""
        pods: dict[str, Json] = {}
        was_away = False
        for version in sorted(self._versions, key=lambda each: each.number):
            if version.content["kind"] == "Pod":
                if version.content["metadata"].get("labels", {}).get("bowsprit.dev/model") == model:
                    pods[version.name] = {} if version.gone else version.content
            elif version.name == model:
                there = sum(map(_serves, pods.values()))
                was_away = was_away or there < ranks
                is_ready = _ready(version.content).get("status") == "True"
                assert not is_ready or there == ranks, (
                    f"Ready in version {version.number}, while {there} of {ranks} ranks were there:\n"
                    + "\n".join(f"{name}: {json.dumps(pod.get('status'))}" for name, pod in pods.items())
                )
        assert was_away, "no rank was away in all this time"

    def _of_model(self, model: str) -> list[Version]:
        kept = list(self._versions)
        return [each for each in kept if each.content["kind"] == "ModelDeployment" and each.name == model]


@contextmanager
def recording(stage: Stage) -> Iterator[Record]:
    """Watches while the block runs."""
    record = Record(stage)
    target = stage.target
    kubectl = [target.kubectl_path, f"--kubeconfig={target.kubeconfig}", f"--namespace={stage.namespace}"]
    with ExitStack() as stack:
        for kind in ("mdep", "pods"):
            command = [*kubectl, "get", kind, "--watch", "--output-watch-events", "--output=json"]
            watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            reader = threading.Thread(target=record.follow, args=(watch,), daemon=True)
            reader.start()
            stack.callback(reader.join)
            stack.enter_context(watch)
            stack.callback(watch.terminate)
        yield record


def _serves(pod: Json) -> bool:
    """A rank that is Ready, has never ended and is not told to."""
    if not pod or "deletionTimestamp" in pod["metadata"]:
        return False
    status = pod["status"]
    ended = any(each["restartCount"] for each in status.get("containerStatuses", ()))
    return not ended and any(
        each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ())
    )


def _ready(model: Json) -> Json:
    conditions = (model.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == "Ready"), {})
