"""What the API takes and what it refuses, as one table: for Python's validate() and for the real API server.

Every rule of the CRD has a row that breaks it and nothing else (test_rules.py holds this file to that).
"""

from __future__ import annotations

from typing import Any, NamedTuple

Manifest = dict[str, Any]


def manifest(name: str = "llama", /, **spec: Any) -> Manifest:
    """A sound ModelDeployment with some fields of spec replaced."""
    return {
        "apiVersion": "bowsprit.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name},
        "spec": {"model": {"uri": "hf://meta-llama/Llama-3.1-70B"}, **spec},
    }


def model(uri: str = "hf://meta-llama/Llama-3.1-70B", **fields: Any) -> Manifest:
    return manifest(model={"uri": uri, **fields})


def plugin(**fields: Any) -> Manifest:
    return manifest(plugins=[fields])


def args(*arguments: str, uri: str = "hf://meta-llama/Llama-3.1-70B") -> Manifest:
    return manifest(model={"uri": uri}, engine={"args": list(arguments)})


def env(**variable: Any) -> Manifest:
    return manifest(engine={"env": [variable]})


def resources(**fields: Any) -> Manifest:
    return manifest(engine={"resources": fields})


def toleration(**fields: Any) -> Manifest:
    return manifest(accelerator={"tolerations": [fields]})


def pod(**spec: Any) -> Manifest:
    return manifest(template={"spec": spec})


def container(**fields: Any) -> Manifest:
    return pod(containers=[{"name": "engine", **fields}])


DIGEST = "a" * 64

ACCEPTED: dict[str, Manifest] = {
    "nothing but a model": manifest(),
    "entry points of every plugin": manifest(
        plugins=[{"image": "a/b:c", "entryPoints": ["a"]}, {"requirement": "x==1", "entryPoints": ["b"]}]
    ),
    "entry points of no plugin": manifest(
        plugins=[{"image": "a/b:c", "entryPoints": []}, {"image": "a/d:e"}]
    ),
    "a name of 40 characters": manifest("a" * 40),
    "a name that only begins like vllm": manifest("vllm-llama"),
    "an hf:// revision and token": model(revision="main", tokenSecretRef={"name": "hf", "key": "token"}),
    "a served name with slashes and colons": model(name="meta-llama/Llama-3.1-70B:fp8"),
    "a config": model(config={"configMapRef": {"name": "llama-config"}}),
    "a claim with a path": model("pvc://models/meta/llama-3.1-70b/"),
    "a bucket": model("s3://models"),
    "a bucket with a path": model("gs://models/llama/3.1"),
    "an Azure container": model("az://models/llama"),
    "an image": model(f"oci://registry.example.com:5000/models/llama:8b@sha256:{DIGEST}"),
    "CPUs": manifest(accelerator={"resource": "cpu"}, parallelism={"tensor": 1, "pipeline": 2}),
    "preflight, as when nothing is said": manifest(preflight="Required"),
    "a self-check": manifest(
        rollout={"verify": {"prompt": "1 + 1 =", "contains": "2", "path": "/v1/chat/completions"}}
    ),
    "a self-check that any answer passes": manifest(rollout={"verify": {"prompt": "hello"}}),
    "an override": manifest(architecture={"override": "MyOptForCausalLM"}),
    "an override that hfOverrides repeats": manifest(
        architecture={"override": "MyOpt", "hfOverrides": {"architectures": ["MyOpt"]}}
    ),
    "hfOverrides of any shape": manifest(
        architecture={"hfOverrides": {"rope_scaling": {"factor": 2.5, "x": [1, None]}, "big": 10**18}}
    ),
    "a plugin in an image": plugin(image="localhost:5000/team/plugin:1.2", path="/opt/wheels"),
    "a plugin in an image by digest": plugin(image=f"registry.example.com/p@sha256:{DIGEST}"),
    "a plugin from an index": plugin(
        requirement="my-opt[fast]==1.2.3+cu12",
        indexURL="https://packages.example.com:8443/wheels/",
        hashes=[f"sha256:{DIGEST}"],
        entryPoints=["my_opt", "my-opt.register"],
    ),
    "flags that the planner reads": args(
        "--max-num-batched-tokens", "8192", "--max-num-seqs=64", "--enforce-eager"
    ),
    "flags that begin like owned ones": args(
        "--model-impl",
        "auto",
        "--config-format=hf",
        "--kv-cache-dtype-skip-layers",
        "1",
        "--tokenizer-revision=x",
    ),
    "a value that looks like a flag's name": args("--seed", "-1", "--generation-config=--config"),
    "--load-format where the weights are on the Hub": args("--load-format", "safetensors"),
    "no arguments at all": manifest(engine={"args": []}),
    "an environment variable": env(name="VLLM_LOGGING_LEVEL", value="DEBUG"),
    "an environment variable from a Secret": env(
        name="AWS_SECRET_ACCESS_KEY", valueFrom={"secretKeyRef": {"name": "s3", "key": "k"}}
    ),
    "CPU, memory and an RDMA device": resources(
        requests={"cpu": "500m", "memory": "1.5Gi"}, limits={"cpu": 8, "rdma/hca_shared_devices_a": 1}
    ),
    "shared memory": manifest(engine={"sharedMemory": "1.5Gi"}),
    "an engine image": manifest(engine={"image": "vllm/vllm-openai:v0.32.0"}),
    "an accelerator": manifest(
        accelerator={
            "resource": "amd.com/gpu",
            "products": ["AMD_Instinct_MI300X"],
            "nodeSelector": {"topology.kubernetes.io/zone": "eu-1", "empty": ""},
        }
    ),
    "a toleration of everything": toleration(operator="Exists"),
    "a toleration for a while": toleration(key="k", value="v", effect="NoExecute", tolerationSeconds=60),
    "capacity": manifest(
        capacity={
            "maxModelLen": 32768,
            "concurrency": 4,
            "gpuMemoryUtilization": 0.9,
            "kvCacheDtype": "fp8",
            "cpuOffload": "8Gi",
            "objective": "MinimizeLatency",
        }
    ),
    "a whole layout": manifest(
        parallelism={
            "tensor": 2,
            "pipeline": 4,
            "gpusPerPod": 4,
            "layerPartition": [20, 20, 20, 20],
            "expert": True,
        }
    ),
    "a layer partition alone": manifest(parallelism={"layerPartition": [40, 40]}),
    "replicas, priority, rollout and suspend": manifest(
        replicas=0,
        priority=-5,
        preflight="Skip",
        suspend=True,
        rollout={"mode": "Surge", "revisionHistoryLimit": 0},
    ),
    "a template": manifest(
        template={
            "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}, "annotations": {"a/b": "any text"}},
            "spec": {
                "priorityClassName": "high",
                "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [
                    {"name": "engine", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                    {
                        "name": "proxy",
                        "image": "envoy:v1",
                        "args": ["-c"],
                        "resources": {"limits": {"cpu": 1}},
                    },
                ],
            },
        }
    ),
    "null for a field that may be absent": model(revision=None, name=None),
}


class Refused(NamedTuple):
    """A manifest with one fault."""

    manifest: Manifest
    field: str
    message: str
    """A part of the message that the fault is answered with."""


_NOT_TENSOR = "set spec.parallelism.tensor"
_NO_GPUS = "must not name GPUs"

REFUSED: dict[str, Refused] = {
    "a name of 41 characters": Refused(manifest("a" * 41), "metadata.name", "at most 40 characters"),
    "a name that begins with a digit": Refused(
        manifest("3-llama"), "metadata.name", "must begin with a letter"
    ),
    "a name with a dot": Refused(manifest("llama-3.1"), "metadata.name", "must begin with a letter"),
    "the name vllm": Refused(manifest("vllm"), "metadata.name", "must not be vllm"),
    "a self-check that asks nothing": Refused(
        manifest(rollout={"verify": {"prompt": " \n"}}),
        "spec.rollout.verify.prompt",
        "must hold more than blanks",
    ),
    "a self-check that every answer passes": Refused(
        manifest(rollout={"verify": {"prompt": "hello", "contains": "  "}}),
        "spec.rollout.verify.contains",
        "every answer would do",
    ),
    # spec.model
    "a URI without scheme": Refused(model("meta-llama/Llama"), "spec.model.uri", "must begin with hf://"),
    "tensor parallelism on CPUs": Refused(
        manifest(accelerator={"resource": "cpu"}, parallelism={"tensor": 2}),
        "spec.parallelism",
        "each pod is one pipeline stage",
    ),
    "GPU types of CPUs": Refused(
        manifest(accelerator={"resource": "cpu", "products": ["NVIDIA-L4"]}),
        "spec.accelerator.products",
        "products are GPU types",
    ),
    "oci:// that is no image": Refused(model("oci://:80/model"), "spec.model.uri", "oci:// needs an image"),
    "an unknown scheme": Refused(model("https://example.com/x"), "spec.model.uri", "unknown scheme"),
    "hf:// without organisation": Refused(model("hf://gpt2"), "spec.model.uri", "an organisation and a name"),
    "hf:// with a revision in it": Refused(model("hf://a/b@main"), "spec.model.uri", "spec.model.revision"),
    "pvc:// without path": Refused(model("pvc://models"), "spec.model.uri", "and a path in it"),
    "pvc:// with a bad claim": Refused(model("pvc://My_Claim/x"), "spec.model.uri", "PersistentVolumeClaim"),
    "a path that climbs": Refused(model("pvc://models/../etc"), "spec.model.uri", "must not contain . or .."),
    "s3:// without bucket": Refused(model("s3:///x"), "spec.model.uri", "needs a bucket"),
    "a revision that would be a flag": Refused(model(revision="--x"), "spec.model.revision", "branch, tag"),
    "a revision of a bucket": Refused(
        model("s3://models", revision="v1"), "spec.model.revision", "is for hf:// only"
    ),
    "a token for a bucket": Refused(
        model("s3://models", tokenSecretRef={"name": "a", "key": "b"}),
        "spec.model.tokenSecretRef",
        "for hf:// only",
    ),
    "a served name with a space": Refused(
        model(name="my model"), "spec.model.name", "must begin with a letter"
    ),
    "a Secret's name in capitals": Refused(
        model(tokenSecretRef={"name": "HF", "key": "t"}),
        "spec.model.tokenSecretRef.name",
        "name of a Kubernetes object",
    ),
    "a Secret's key with a slash": Refused(
        model(tokenSecretRef={"name": "hf", "key": "a/b"}), "spec.model.tokenSecretRef.key", "key of a Secret"
    ),
    "a ConfigMap's name with a slash": Refused(
        model(config={"configMapRef": {"name": "a/b"}}),
        "spec.model.config.configMapRef.name",
        "name of a Kubernetes object",
    ),
    # spec.architecture
    "an override with a module": Refused(
        manifest(architecture={"override": "pkg:Class"}), "spec.architecture.override", "name of a class"
    ),
    "an override that hfOverrides contradicts": Refused(
        manifest(architecture={"override": "MyOpt", "hfOverrides": {"architectures": ["Other"]}}),
        "spec.architecture.override",
        "name different classes",
    ),
    # spec.plugins
    "entry points of one plugin of two": Refused(
        manifest(plugins=[{"image": "a/b:c", "entryPoints": ["a"]}, {"image": "a/d:e", "entryPoints": []}]),
        "spec.plugins",
        "of every plugin or of none",
    ),
    "a plugin of nothing": Refused(plugin(entryPoints=["a"]), "spec.plugins[0]", "exactly one of image"),
    "a plugin of both": Refused(
        plugin(image="a/b:c", requirement="x==1"), "spec.plugins[0]", "exactly one of image"
    ),
    "a path without image": Refused(
        plugin(requirement="x==1", path="/plugins"), "spec.plugins[0].path", "set image, or delete path"
    ),
    "a relative path": Refused(
        plugin(image="a/b:c", path="plugins"), "spec.plugins[0].path", "absolute path"
    ),
    "an index for an image": Refused(
        plugin(image="a/b:c", indexURL="https://x/wheels"), "spec.plugins[0].indexURL", "set requirement"
    ),
    "hashes for an image": Refused(
        plugin(image="a/b:c", hashes=[f"sha256:{DIGEST}"]), "spec.plugins[0].hashes", "belong to requirement"
    ),
    "an image with a scheme": Refused(
        plugin(image="docker://a/b"), "spec.plugins[0].image", "must be an image"
    ),
    "a requirement with a range": Refused(
        plugin(requirement="my-opt>=1.2"), "spec.plugins[0].requirement", "must pin one version"
    ),
    "a requirement with a wildcard": Refused(
        plugin(requirement="my-opt==1.*"), "spec.plugins[0].requirement", "must pin one version"
    ),
    "an index with a password": Refused(
        plugin(requirement="x==1", indexURL="https://me:secret@x/wheels"),
        "spec.plugins[0].indexURL",
        "no user, password",
    ),
    "a hash that is none": Refused(
        plugin(requirement="x==1", hashes=["md5:1"]), "spec.plugins[0].hashes[0]", "64 lower-case hexadecimal"
    ),
    "an entry point with its module": Refused(
        plugin(image="a/b:c", entryPoints=["my_opt=pkg:register"]),
        "spec.plugins[0].entryPoints[0]",
        "not module:function",
    ),
    # spec.engine
    "an engine image with a space": Refused(
        manifest(engine={"image": "vllm openai"}), "spec.engine.image", "must be an image"
    ),
    "an argument before all flags": Refused(args("my/model"), "spec.engine.args", "must be a flag"),
    "a lone --": Refused(args("--seed", "1", "--"), "spec.engine.args", "leave it out"),
    "--model": Refused(args("--model=x/y"), "spec.engine.args[0]", "set spec.model.uri"),
    "--revision": Refused(args("--revision", "main"), "spec.engine.args[0]", "set spec.model.revision"),
    "--served-model-name": Refused(
        args("--served-model-name", "x"), "spec.engine.args[0]", "set spec.model.name"
    ),
    "--hf-overrides in parts": Refused(
        args("--hf-overrides.architectures+", "X"), "spec.engine.args[0]", "set spec.architecture.override"
    ),
    "--tensor-parallel-size": Refused(
        args("--tensor-parallel-size", "4"), "spec.engine.args[0]", _NOT_TENSOR
    ),
    "--tensor_parallel_size": Refused(args("--tensor_parallel_size=4"), "spec.engine.args[0]", _NOT_TENSOR),
    "--tensor-par=4": Refused(args("--seed=1", "--tensor-par=4"), "spec.engine.args[1]", _NOT_TENSOR),
    "-tp": Refused(args("-tp", "4"), "spec.engine.args[0]", _NOT_TENSOR),
    "-tp=4": Refused(args("-tp=4"), "spec.engine.args[0]", _NOT_TENSOR),
    "-t, which argparse takes for -tp": Refused(args("-t", "4"), "spec.engine.args[0]", _NOT_TENSOR),
    "-pp": Refused(args("-pp", "2"), "spec.engine.args[0]", "set spec.parallelism.pipeline"),
    "--no-enable-expert-parallel": Refused(
        args("--no-enable-expert-parallel"), "spec.engine.args[0]", "set spec.parallelism.expert"
    ),
    "-dpl": Refused(args("-dpl", "2"), "spec.engine.args[0]", "set spec.replicas"),
    "--prefill-context-parallel-size": Refused(args("-pcp", "2"), "spec.engine.args[0]", "planner's back"),
    "-n4": Refused(args("-n4"), "spec.engine.args[0]", "find each other by it"),
    "--distributed-executor-backend": Refused(
        args("--distributed-executor-backend", "ray"), "spec.engine.args[0]", "follows from the plan"
    ),
    "--gpu-memory-util": Refused(
        args("--gpu-memory-util", "0.5"), "spec.engine.args[0]", "set spec.capacity.gpuMemoryUtilization"
    ),
    "--max-model-len": Refused(
        args("--max-model-len", "1k"), "spec.engine.args[0]", "set spec.capacity.maxModelLen"
    ),
    "--kv-cache-dtype": Refused(
        args("--kv-cache-dtype=fp8"), "spec.engine.args[0]", "set spec.capacity.kvCacheDtype"
    ),
    "--cpu-offload-gb": Refused(
        args("--cpu-offload-gb", "8"), "spec.engine.args[0]", "set spec.capacity.cpuOffload"
    ),
    "--port": Refused(args("--port", "80"), "spec.engine.args[0]", "HTTP on port 8000"),
    "--shutdown-timeout": Refused(
        args("--shutdown-timeout", "9"), "spec.engine.args[0]", "terminationGracePeriodSeconds"
    ),
    "--config": Refused(args("--config", "f.yaml"), "spec.engine.args[0]", "could set any flag unseen"),
    "--load-format where the weights are in a bucket": Refused(
        args("--load-form", "auto", uri="s3://models/x"), "spec.engine.args", "vLLM's own streamer"
    ),
    "an environment variable with a space": Refused(
        env(name="A B", value="1"), "spec.engine.env[0].name", "name of an environment variable"
    ),
    "an environment variable with two values": Refused(
        env(name="A", value="1", valueFrom={"fieldRef": {"fieldPath": "status.podIP"}}),
        "spec.engine.env[0]",
        "not both",
    ),
    "VLLM_PP_LAYER_PARTITION": Refused(
        env(name="VLLM_PP_LAYER_PARTITION", value="1,2"),
        "spec.engine.env[0].name",
        "parallelism.layerPartition",
    ),
    "VLLM_PLUGINS": Refused(env(name="VLLM_PLUGINS", value="a"), "spec.engine.env[0].name", "entryPoints"),
    "VLLM_HOST_IP": Refused(
        env(name="VLLM_HOST_IP", value="1.2.3.4"), "spec.engine.env[0].name", "leave it out"
    ),
    "CUDA_VISIBLE_DEVICES": Refused(
        env(name="CUDA_VISIBLE_DEVICES", value="0"), "spec.engine.env[0].name", "the device plugin"
    ),
    "NVIDIA GPUs among the limits": Refused(
        resources(limits={"nvidia.com/gpu": 4}), "spec.engine.resources.limits", _NO_GPUS
    ),
    "a MIG slice among the requests": Refused(
        resources(requests={"nvidia.com/mig-1g.5gb": "1"}), "spec.engine.resources.requests", _NO_GPUS
    ),
    "a limit that is no quantity": Refused(
        resources(limits={"memory": "64 GB"}), "spec.engine.resources.limits", "must be a quantity"
    ),
    "less than no CPU": Refused(
        resources(requests={"cpu": -1}), "spec.engine.resources.requests", "must be a quantity"
    ),
    "shared memory without unit": Refused(
        manifest(engine={"sharedMemory": "16"}), "spec.engine.sharedMemory", "a bare number would mean bytes"
    ),
    "no shared memory": Refused(
        manifest(engine={"sharedMemory": "0Gi"}), "spec.engine.sharedMemory", "a size above zero"
    ),
    # spec.accelerator
    "a product with spaces": Refused(
        manifest(accelerator={"products": ["A100 80GB"]}), "spec.accelerator.products[0]", "GPU type"
    ),
    "a node label that is none": Refused(
        manifest(accelerator={"nodeSelector": {"zone": "eu west"}}),
        "spec.accelerator.nodeSelector",
        "label keys",
    ),
    "Exists with a value": Refused(
        toleration(key="k", operator="Exists", value="v"),
        "spec.accelerator.tolerations[0].value",
        "takes any value",
    ),
    "a toleration of nothing": Refused(
        toleration(effect="NoSchedule"),
        "spec.accelerator.tolerations[0].operator",
        "needs the operator Exists",
    ),
    "seconds without NoExecute": Refused(
        toleration(key="k", tolerationSeconds=5),
        "spec.accelerator.tolerations[0].tolerationSeconds",
        "needs the effect NoExecute",
    ),
    # spec.capacity, spec.parallelism
    "all of the memory": Refused(
        manifest(capacity={"gpuMemoryUtilization": 1}),
        "spec.capacity.gpuMemoryUtilization",
        "between 0.1 and 0.99",
    ),
    "none of the memory": Refused(
        manifest(capacity={"gpuMemoryUtilization": 0}),
        "spec.capacity.gpuMemoryUtilization",
        "between 0.1 and 0.99",
    ),
    "CPU offload in words": Refused(
        manifest(capacity={"cpuOffload": "some"}), "spec.capacity.cpuOffload", "a size above zero"
    ),
    "tensor parallelism across pods": Refused(
        manifest(parallelism={"tensor": 4, "gpusPerPod": 2}),
        "spec.parallelism.gpusPerPod",
        "multiple of tensor",
    ),
    "pods that are not alike": Refused(
        manifest(parallelism={"tensor": 1, "pipeline": 5, "gpusPerPod": 4}),
        "spec.parallelism.gpusPerPod",
        "multiple of gpusPerPod",
    ),
    "a partition of another length": Refused(
        manifest(parallelism={"pipeline": 3, "layerPartition": [40, 40]}),
        "spec.parallelism.layerPartition",
        "as many stages as pipeline",
    ),
    # spec.template
    "a label that is none": Refused(
        manifest(template={"metadata": {"labels": {"a": "b c"}}}),
        "spec.template.metadata.labels",
        "label keys",
    ),
    "a label of Bowsprit's own": Refused(
        manifest(template={"metadata": {"labels": {"bowsprit.dev/model": "x"}}}),
        "spec.template.metadata.labels",
        "Bowsprit's own",
    ),
    "nodeName": Refused(pod(nodeName="n"), "spec.template.spec.nodeName", "pins each pod"),
    "schedulingGates": Refused(
        pod(schedulingGates=[{"name": "g"}]), "spec.template.spec.schedulingGates", "Bowsprit's own gate"
    ),
    "restartPolicy": Refused(
        pod(restartPolicy="Never"), "spec.template.spec.restartPolicy", "restarts as a whole"
    ),
    "activeDeadlineSeconds": Refused(
        pod(activeDeadlineSeconds=5), "spec.template.spec.activeDeadlineSeconds", "use spec.suspend"
    ),
    "hostname": Refused(pod(hostname="h"), "spec.template.spec.hostname", "hostname cannot be set"),
    "subdomain": Refused(pod(subdomain="s"), "spec.template.spec.subdomain", "subdomain cannot be set"),
    "affinity": Refused(
        pod(affinity={"nodeAffinity": {}}), "spec.template.spec.affinity", "spec.accelerator.nodeSelector"
    ),
    "topologySpreadConstraints": Refused(
        pod(topologySpreadConstraints=[]),
        "spec.template.spec.topologySpreadConstraints",
        "spec.accelerator.nodeSelector",
    ),
    "resourceClaims": Refused(
        pod(resourceClaims=[{"name": "gpu"}]),
        "spec.template.spec.resourceClaims",
        "would not see these devices",
    ),
    "resources of the pod": Refused(
        pod(resources={"limits": {"cpu": 1}}), "spec.template.spec.resources", "set spec.engine.resources"
    ),
    "the engine's image in the template": Refused(
        container(image="x"), "spec.template.spec.containers", "set spec.engine.image"
    ),
    "the engine's command in the template": Refused(
        container(command=["sh"]), "spec.template.spec.containers", "Bowsprit starts vLLM itself"
    ),
    "the engine's args in the template": Refused(
        container(args=["-tp", "4"]), "spec.template.spec.containers", "writes the command line"
    ),
    "the engine's env in the template": Refused(
        container(env=[{"name": "A"}]), "spec.template.spec.containers", "set spec.engine.env"
    ),
    "the engine's resources in the template": Refused(
        container(resources={"limits": {"cpu": 1}}),
        "spec.template.spec.containers",
        "set spec.engine.resources",
    ),
    "GPUs for a sidecar": Refused(
        pod(containers=[{"name": "side", "resources": {"limits": {"nvidia.com/gpu": 1}}}]),
        "spec.template.spec.containers[0].resources.limits",
        _NO_GPUS,
    ),
    "GPUs for an init container": Refused(
        pod(initContainers=[{"name": "init", "resources": {"requests": {"amd.com/gpu": 1}}}]),
        "spec.template.spec.initContainers[0].resources.requests",
        _NO_GPUS,
    ),
}

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
