"""What is no ModelDeployment at all, whatever it says: for Python's validate() and the real API server."""

from __future__ import annotations

from tests.unit.api.manifests import Refused, args, env, manifest, model, plugin, pod, resources

MALFORMED: dict[str, Refused] = {
    "no spec": Refused({k: v for k, v in manifest().items() if k != "spec"}, "spec", "must be given"),
    "no model": Refused({**manifest(), "spec": {}}, "spec.model", "must be given"),
    "no URI": Refused(manifest(model={}), "spec.model.uri", "must be given"),
    "null for the URI": Refused(manifest(model={"uri": None}), "spec.model.uri", "must be given"),
    "text for a number": Refused(
        manifest(parallelism={"tensor": "2"}),
        "spec.parallelism.tensor",
        "must be a whole number, not the text 2",
    ),
    "a fraction for a whole number": Refused(
        manifest(replicas=1.5), "spec.replicas", "must be a whole number, not the number 1.5"
    ),
    "a boolean for a number": Refused(manifest(replicas=True), "spec.replicas", "not the boolean true"),
    "a number for text": Refused(
        manifest(engine={"sharedMemory": 16}), "spec.engine.sharedMemory", "must be a text, not the number 16"
    ),
    "a text for a list": Refused(
        manifest(engine={"args": "--seed 1"}), "spec.engine.args", "must be a list, not the text --seed 1"
    ),
    "a list for an object": Refused(manifest(engine=[]), "spec.engine", "must be an object, not a list"),
    "null in a list": Refused(
        manifest(engine={"args": [None]}), "spec.engine.args[0]", "must be a text, not null"
    ),
    "negative replicas": Refused(manifest(replicas=-1), "spec.replicas", "at least 0, not -1"),
    "10^18 replicas": Refused(manifest(replicas=10**18), "spec.replicas", "at most 1000"),
    "no tensor ranks": Refused(manifest(parallelism={"tensor": 0}), "spec.parallelism.tensor", "at least 1"),
    "an empty stage": Refused(
        manifest(parallelism={"layerPartition": [40, 0]}), "spec.parallelism.layerPartition[1]", "at least 1"
    ),
    "a partition of nothing": Refused(
        manifest(parallelism={"layerPartition": []}), "spec.parallelism.layerPartition", "at least 1 entries"
    ),
    "an unknown KV cache type": Refused(
        manifest(capacity={"kvCacheDtype": "int4"}), "spec.capacity.kvCacheDtype", "must be one of auto"
    ),
    "an unknown resource": Refused(
        manifest(accelerator={"resource": "gpu"}),
        "spec.accelerator.resource",
        "must be one of nvidia.com/gpu",
    ),
    "a preflight of neither kind": Refused(
        manifest(preflight="Maybe"), "spec.preflight", "must be one of Required, Skip"
    ),
    "an empty URI": Refused(model(""), "spec.model.uri", "at least 6 characters"),
    "a very long argument": Refused(
        args("--x=" + "y" * 3000), "spec.engine.args[0]", "at most 2048 characters"
    ),
    "200 arguments": Refused(args(*["--x"] * 200), "spec.engine.args", "at most 128 entries"),
    "17 plugins": Refused(
        manifest(plugins=[{"image": f"a/b:{i}"} for i in range(17)]), "spec.plugins", "at most 16 entries"
    ),
    "an entry point twice": Refused(
        plugin(image="a/b:c", entryPoints=["x", "x"]),
        "spec.plugins[0].entryPoints[1]",
        "x stands there twice",
    ),
    "an environment variable twice": Refused(
        manifest(engine={"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
        "spec.engine.env[1]",
        "A stands there twice",
    ),
    "an environment variable without name": Refused(
        env(value="1"), "spec.engine.env[0].name", "must be given"
    ),
    "a container without name": Refused(
        pod(containers=[{"image": "x"}]), "spec.template.spec.containers[0].name", "must be given"
    ),
}
"""Refused by the schema alone; the API server says it in its own words, of the same field."""

UNKNOWN: dict[str, Refused] = {
    "a misspelt field": Refused(manifest(replica=2), "spec.replica", "unknown field; known are accelerator"),
    "a misspelt inner field": Refused(
        model(url="x"), "spec.model.url", "unknown field; known are config, name"
    ),
    "a field of a later version": Refused(manifest(autoscaling={}), "spec.autoscaling", "unknown field"),
    "resource claims": Refused(resources(claims=[]), "spec.engine.resources.claims", "unknown field"),
    "a pod template with a status": Refused(
        manifest(template={"status": {}}), "spec.template.status", "unknown field"
    ),
}
"""`kubectl apply` refuses these; with --validate=false they are dropped."""
