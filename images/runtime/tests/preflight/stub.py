"""An engine in miniature: the doors of vLLM and torch that preflight knocks at, and nothing behind them.

It lets the whole command run where no vLLM is. What vLLM really does is for the tests marked `vllm`.
"""

from __future__ import annotations

from pathlib import Path

FILES = {
    "vllm-{version}.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n",
    "torch/__init__.py": """
import contextlib
from torch import nn
bfloat16 = "torch.bfloat16"
def get_default_dtype(): return "torch.float32"
def set_default_dtype(dtype): ...
def device(name): return contextlib.nullcontext()
""",
    "torch/nn.py": """
class Module:
    def named_parameters(self, *, remove_duplicate): return iter(())
    def named_buffers(self, *, remove_duplicate): return iter(())
""",
    "vllm/__init__.py": """
from torch.nn import Module
__version__ = "{version}"
class Llama(Module):
    def __init__(self, *, vllm_config, prefix=""): ...
class _Registered:
    def __init__(self, model): self.model_cls = model
    def load_model_cls(self): return self.model_cls
class ModelRegistry:
    models = {{"LlamaForCausalLM": _Registered(Llama)}}
    @classmethod
    def register_model(cls, name, model): cls.models[name] = _Registered(model)
""",
    "vllm/plugins/__init__.py": "plugins_loaded = False\n",
    "vllm/entrypoints/cli/main.py": """
import argparse, sys
from vllm.entrypoints.cli import serve
def main():
    parser = argparse.ArgumentParser()
    command = parser.add_subparsers().add_parser("serve")
    command.add_argument("model_tag")
    command.add_argument("--revision")
    command.add_argument("--runner", default="auto")
    command.add_argument("--load-format", default="auto")
    command.add_argument("--hf-overrides", default={{}})
    command.set_defaults(run=serve.ServeSubcommand.cmd)
    arguments = parser.parse_args()
    arguments.run(arguments)
""",
    "vllm/entrypoints/cli/serve.py": """
class ServeSubcommand:
    @staticmethod
    def cmd(arguments): ...
""",
    "vllm/engine/arg_utils.py": """
from types import SimpleNamespace as Some
class AsyncEngineArgs:
    @staticmethod
    def from_cli_args(arguments): return AsyncEngineArgs()
    def create_engine_config(self):
        model = Some(architecture="LlamaForCausalLM", max_model_len=2048, dtype="torch.bfloat16")
        model.quantization, model.runner_type = None, "generate"
        model.hf_text_config = Some(num_hidden_layers=0)
        config = Some(model_config=model, quant_config=None)
        config.compilation_config = Some(static_forward_context={{}})
        config.parallel_config = Some(tensor_parallel_size=1)
        return config
""",
    "vllm/model_executor/models/interfaces.py": "def supports_pp(model): return True\n",
    "vllm/model_executor/model_loader/utils.py": (
        "from vllm import Llama\ndef initialize_model(config): return Llama(vllm_config=config)\n"
    ),
    "vllm/config.py": """
import contextlib
def set_current_vllm_config(config): return contextlib.nullcontext()
""",
    "vllm/distributed/parallel_state.py": "_TP = _PP = None\n",
}


def engine(folder: Path, version: str = "0.24.0", **changes: str) -> Path:
    """Writes the engine into `folder`; `changes` are path -> text."""
    files = {path.format(version=version): text.format(version=version) for path, text in FILES.items()}
    for path, text in {**files, **changes}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if file.suffix == ".py":
            _packages(file.parent, folder)
    return folder


def _packages(package: Path, root: Path) -> None:
    while package != root:
        (package / "__init__.py").touch()
        package = package.parent
