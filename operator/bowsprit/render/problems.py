"""What the schema cannot see: it leaves the pod template and a few other objects open. What of them cannot be
written down as JSON, or merged into a pod, is found here.

A spec with problems is neither planned nor rendered; what runs keeps running.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from types import NoneType
from typing import Any

from bowsprit.api.names import ENGINE_CONTAINER
from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.render import engine_args
from bowsprit.render.names import LAYOUT_ENV, OWN_VOLUMES, PLUGINS_ENV, PREFLIGHT_ENV, VERIFY_ENV
from bowsprit.render.template import MERGE_KEYS
from bowsprit.render.wishes import template_spec_of

_OBJECTS = frozenset({"metadata", "spec", "labels", "annotations", "nodeSelector", "resources"})
_CONTAINERS = ("containers", "initContainers")
_DEEPEST = 64
_OWN_VARIABLES = frozenset(
    {
        LAYOUT_ENV,
        PLUGINS_ENV,
        PREFLIGHT_ENV,
        VERIFY_ENV,
        "LWS_LEADER_ADDRESS",
        "LWS_GROUP_SIZE",
        "LWS_WORKER_INDEX",
    }
)
_DURATION = "terminationGracePeriodSeconds"


def problems(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """What is wrong with a spec, each as `field: what is wrong and what to do`."""
    unwritable = _unwritable(spec)
    return unwritable or (
        *_resource_problems(spec),
        *_variable_problems(spec),
        *_batch_problems(spec),
        *_verify_problems(spec),
        *_template_problems(spec.template or {}),
    )


def can_be_rendered(spec: ModelDeploymentSpec) -> bool:
    """Whether rendering has an answer at all.

    Asked of stored revisions, which were accepted once: a rule that is added later must not take away a
    revision that runs.
    """
    shapes = (*_unwritable(spec), *_resource_problems(spec), *_template_problems(spec.template or {}))
    return not shapes


def _unwritable(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    return tuple(f"{path}: {fault}" for path, value in _open_values(spec) if (fault := _json_fault(value)))


def _resource_problems(spec: ModelDeploymentSpec) -> Iterator[str]:
    for section, amounts in ((spec.engine.resources if spec.engine else None) or {}).items():
        if section not in ("limits", "requests"):
            yield f"spec.engine.resources: {section} is neither limits nor requests: leave it out"
        elif not isinstance(amounts, Mapping):
            yield f"spec.engine.resources.{section}: must map resources to quantities, as in {{cpu: 8}}"


def _variable_problems(spec: ModelDeploymentSpec) -> Iterator[str]:
    variables = (spec.engine.env if spec.engine else None) or []
    for name, times in Counter(variable.get("name") for variable in variables).items():
        if times > 1:
            yield f"spec.engine.env: {name} is given {times} times: keep one"
        if name in _OWN_VARIABLES:
            yield f"spec.engine.env: {name} is Bowsprit's or LeaderWorkerSet's own: choose another name"


def _verify_problems(spec: ModelDeploymentSpec) -> Iterator[str]:
    """The answer is waited for by Bowsprit's own readiness probe."""
    containers: Any = template_spec_of(spec).get("containers")
    named = containers if _has_keys(containers, "name") else []
    probed = any(each["name"] == ENGINE_CONTAINER and "readinessProbe" in each for each in named)
    if spec.rollout and spec.rollout.verify and probed:
        yield (
            "spec.rollout.verify: the readinessProbe that spec.template gives the engine would not wait for "
            "the answer: leave one of the two out"
        )


def _batch_problems(spec: ModelDeploymentSpec) -> Iterator[str]:
    """vLLM checks these when it reads its configuration (config/scheduler.py)."""
    args = (spec.engine.args if spec.engine else None) or []
    tokens = engine_args.integer_of(args, "--max-num-batched-tokens")
    sequences = engine_args.integer_of(args, "--max-num-seqs")
    if tokens is not None and sequences is not None and tokens < sequences:
        yield (
            f"spec.engine.args: --max-num-seqs {sequences} is more than --max-num-batched-tokens {tokens}: "
            "raise the tokens, or leave one out"
        )
    if engine_args.switch_of(args, "--enable-chunked-prefill") is not False:
        return
    longest = spec.capacity.max_model_len if spec.capacity else None
    if longest is None:
        yield (
            "spec.engine.args: with --no-enable-chunked-prefill a step takes the longest prompt whole: say "
            "how long in spec.capacity.maxModelLen"
        )
    elif tokens is not None and tokens < longest:
        yield (
            f"spec.engine.args: with --no-enable-chunked-prefill --max-num-batched-tokens {tokens} must be "
            f"at least maxModelLen {longest}: raise it, or leave it out"
        )


def _open_values(spec: ModelDeploymentSpec) -> Iterator[tuple[str, Any]]:
    """Where the API takes any object."""
    yield "spec.template", spec.template
    if spec.architecture:
        yield "spec.architecture.hfOverrides", spec.architecture.hf_overrides
    if spec.engine:
        yield "spec.engine.env", spec.engine.env
        yield "spec.engine.resources", spec.engine.resources
    if spec.accelerator:
        yield "spec.accelerator.tolerations", spec.accelerator.tolerations


def _json_fault(value: Any) -> str | None:
    level, depth = [value], 0
    while level:
        if depth > _DEEPEST:
            return f"is nested more than {_DEEPEST} levels deep: nothing in Kubernetes or vLLM is"
        for each in level:
            if isinstance(each, float) and not isfinite(each):
                return f"{each} is not a number that JSON has: write a finite one, or put it in quotes"
            if not isinstance(each, (Mapping, list, str, int, float, NoneType)):
                return f"{each} is a {type(each).__name__} in YAML: put it in quotes"
        level = [inner for each in level for inner in _inner(each)]
        depth += 1
    return None


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else ()


def _template_problems(template: Mapping[str, Any]) -> list[str]:
    found = [*_unmergeable(template, "spec.template")]
    for section in ("metadata", "spec"):
        if isinstance(template.get(section), Mapping):
            found += _unmergeable(template[section], f"spec.template.{section}")
    pod = template.get("spec")
    if isinstance(pod, Mapping):
        found += _own_volumes(pod)
    for kind, containers in pod.items() if isinstance(pod, Mapping) else ():
        if kind in _CONTAINERS and _has_keys(containers, "name"):
            for container in containers:
                found += _unmergeable(container, f"spec.template.spec.{kind}[{container['name']}]")
    return found


def _own_volumes(pod: Mapping[str, Any]) -> Iterator[str]:
    """Volumes that the runtime, plugins and weights are brought in; /dev/shm and the home folder may be
    replaced."""
    volumes: Any = pod.get("volumes")
    for volume in volumes if _has_keys(volumes, "name") else ():
        if volume["name"].startswith(OWN_VOLUMES):
            yield (
                f"spec.template.spec.volumes: {volume['name']} begins like Bowsprit's own volumes "
                f"({OWN_VOLUMES}…): choose another name"
            )


def _unmergeable(section: Mapping[Any, Any], path: str) -> Iterator[str]:
    for key, value in section.items():
        fault = _fault(key, value)
        if fault:
            yield f"{path}.{key}: {fault}"


def _fault(key: object, value: Any) -> str | None:
    if not isinstance(key, str):
        return "must be text: put it in quotes"
    if key.startswith("$"):
        return "patch directives are not supported: write the fields themselves (null deletes one)"
    return _shape_fault(key, value)


def _shape_fault(key: str, value: Any) -> str | None:
    if key in MERGE_KEYS and not _has_keys(value, MERGE_KEYS[key]):
        return f"must be a list of objects, each with {MERGE_KEYS[key]}: entries are merged by it"
    if key == "tolerations" and not _is_list_of_objects(value):
        return "must be a list of tolerations: add them in spec.accelerator.tolerations"
    if key in _OBJECTS and not isinstance(value, Mapping):
        return "must be an object: leave it out to keep what Bowsprit sets"
    if key == "nodeSelector" and not all(isinstance(each, str) for each in value.values()):
        return "must map labels to texts: put numbers and true or false in quotes"
    if key == _DURATION and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        return "must be a number of seconds, 0 or more"
    return None


def _has_keys(value: Any, merge_key: str) -> bool:
    wanted = int if merge_key == "containerPort" else str
    return _is_list_of_objects(value) and all(isinstance(entry.get(merge_key), wanted) for entry in value)


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)
