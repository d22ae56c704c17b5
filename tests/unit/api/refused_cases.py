"""What a rule of the API refuses: for Python's validate() and for the real API server.

Every rule of the CRD has a row that breaks it and nothing else (test_rules.py holds this file to that).
"""

from __future__ import annotations

from tests.unit.api.manifests import (
    DIGEST,
    Refused,
    args,
    container,
    env,
    manifest,
    model,
    plugin,
    pod,
    resources,
    toleration,
)

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
