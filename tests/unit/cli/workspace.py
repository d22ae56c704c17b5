"""A folder of files to plan with, and the command run on them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from bowsprit.cli.main import app

A100 = "NVIDIA-A100-80GB-PCIe"

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
"""A dense model of 70 billion parameters: 131 GiB, so 2 GPUs of 80 GB and a third for long contexts."""


def model(name: str, namespace: str | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {
        "apiVersion": "bowsprit.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": metadata,
        "spec": {
            "model": {"uri": "hf://org/model", "config": {"configMapRef": {"name": "config"}}},
            "capacity": {"maxModelLen": 8192},
            **spec,
        },
    }


def config_map(data: dict[str, Any] | None = None, namespace: str = "default") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config", "namespace": namespace},
        "data": {"config.json": json.dumps(CONFIG)} if data is None else data,
    }


def node(name: str, gpus: int = 4) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"nvidia.com/gpu.product": A100, "nvidia.com/gpu.memory": "81920"},
        },
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus)},
            "capacity": {"nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, on: str, gpus: int, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "nodeName": on,
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}],
        },
        "status": {"phase": "Running"},
    }


def listed(*items: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


@dataclass(frozen=True)
class Workspace:
    folder: Path

    def write(self, name: str, *documents: Any) -> str:
        """JSON is YAML: documents as given, texts as they are."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "\n---\n".join(
                each if isinstance(each, str) else json.dumps(each, indent=1) for each in documents
            )
        )
        return str(path)

    def run(self, *args: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, [arg.replace("@", f"{self.folder}/") for arg in args], input=stdin)

    def plan(self, *args: str) -> Result:
        """`bowsprit plan -f models.yaml --inventory nodes.json` with more arguments."""
        return self.run("plan", "-f", "@models.yaml", "--inventory", "@nodes.json", *args)

    def data(self, *args: str) -> dict[str, Any]:
        """What `plan -o json` says."""
        result = self.plan("-o", "json", *args)
        assert result.exit_code in (0, 3), result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found
