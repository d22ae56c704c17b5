"""What the API takes: for Python's validate() and for the real API server."""

from __future__ import annotations

from tests.unit.api.manifests import (
    DIGEST,
    Manifest,
    args,
    env,
    manifest,
    model,
    plugin,
    resources,
    toleration,
)

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
