"""What one pod of a model asks of its node beside the GPUs of its layout, read from the pod as rendered.

The engine, whatever is installed before it starts, and all that the user's template adds are in it, so that
no field has to be thought of here.
"""

from __future__ import annotations

from bowsprit.api.pod_requests import CPU, pod_requests
from bowsprit.plan.needs import Needs
from bowsprit.plan.result import Layout
from bowsprit.render import wishes
from bowsprit.render.pod import head_template
from bowsprit.render.revision import Revision

_ANY = Layout("", tensor=1, pipeline=1, gpus_per_pod=1, layer_partition=())
"""Only the GPUs depend on the layout."""


def needs_of(name: str, revision: Revision) -> Needs:
    """Of the model `name`; the head and the workers of a group ask for the same.

    GPUs are in it when something else than the engine asks for some: then a pod is no smaller than that.
    """
    asked = pod_requests(head_template(name, revision, _ANY)["spec"])
    resource = wishes.resource_of(revision.spec)
    if resource != CPU and asked.get(resource, 0) <= _ANY.gpus_per_pod:
        asked.pop(resource, None)
    return tuple(sorted(asked.items()))
