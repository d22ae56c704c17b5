"""What real plugin packages do, each with its verdict: one entry a behaviour, judged by real vLLM.

Most were seen in public packages; the sentence is the test's id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bowsprit_runtime import reasons
from images.runtime.tests.preflight.judging import CONFIG, MODEL, Made

MY_LLAMA = ("--hf-overrides", '{"architectures": ["MyLlama"]}')
GENERAL = "vllm.general_plugins"


@dataclass(frozen=True)
class Case:
    """Plugins, what is asked of the engine, and what has to come out."""

    plugins: Sequence[Made] = ()
    verdict: str = "Ok"
    faults: Sequence[tuple[str, str]] = ()
    """(reason, blame), in order."""
    says: Sequence[str] = ()
    """Pieces of the messages and warnings."""
    arguments: Sequence[str] = MY_LLAMA
    config: Any = field(default_factory=lambda: CONFIG)
    weights: bool = True
    request: Mapping[str, Any] = field(default_factory=dict)


def constructor(*lines: str) -> Made:
    """A model that does more than its parent when it is built."""
    body = "\n".join(f"        {line}" for line in lines)
    init = f"    def __init__(self, *, vllm_config, prefix=''):\n        super().__init__(vllm_config=vllm_config, prefix=prefix)\n{body}\n"
    return Made({"model.py": MODEL.replace("    pass\n", init)})


def package(init: str, **more: Any) -> Made:
    return Made({"__init__.py": init}, **more)


def model_class(source: str) -> Made:
    return Made({"model.py": source})


def one(reason: str, blame: str, *says: str, verdict: str = "Broken") -> dict[str, Any]:
    return {"verdict": verdict, "faults": [(reason, blame)], "says": says}


MODULE = """
import torch
class MyLlama(torch.nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.proj = torch.nn.Linear(8, 8)
    def embed_input_ids(self, input_ids): ...
    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None): ...
    def compute_logits(self, hidden_states): ...
    def load_weights(self, weights): return set()
"""
OF_2024 = """
import torch
class MyLlama(torch.nn.Module):
    def __init__(self, config, cache_config=None, quant_config=None):
        super().__init__()
    def forward(self, input_ids, positions, kv_caches, attn_metadata): ...
    def compute_logits(self, hidden_states, sampling_metadata): ...
    def load_weights(self, weights): ...
"""
POOLING = """
import torch
class MyLlama(torch.nn.Module):
    is_pooling_model = True
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
    def embed_input_ids(self, input_ids): ...
    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None): ...
    def load_weights(self, weights): return set()
"""

FINE: dict[str, Case] = {
    "no plugin at all": Case(arguments=()),
    "a class that inherits from vLLM's own": Case([Made()]),
    "a class of its own with all methods": Case([model_class(MODULE)]),
    "the packaging of the original proposal": Case(
        [
            package(
                "from vllm.plugins.model_plugin import ModelPlugin\n"
                "from my_plugin.model import MyLlama\n"
                "MODEL_PLUGIN = ModelPlugin(architecture_name='MyLlama', implementation_cls=MyLlama)\n",
                entry_points={"vllm.model_architectures": "my_plugin = my_plugin:MODEL_PLUGIN"},
            )
        ]
    ),
    "one good architecture of three is asked for": Case(
        [
            package(
                "def register():\n    from vllm import ModelRegistry\n"
                "    ModelRegistry.register_model('MyLlama', 'my_plugin.model:MyLlama')\n"
                "    ModelRegistry.register_model('Bad1', 'my_plugin.nowhere:Bad')\n"
                "    ModelRegistry.register_model('Bad2', 'my_plugin.model:Bad')\n"
            )
        ]
    ),
    "a pooling class has no compute_logits": Case(
        [model_class(POOLING)], arguments=(*MY_LLAMA, "--runner", "pooling")
    ),
    "it asks for the version of vllm": Case(
        [
            package(
                "import importlib.metadata\nimportlib.metadata.version('vllm')\n"
                "from my_plugin.later import register\n",
                raw={
                    "my_plugin/later.py": "def register():\n    from vllm import ModelRegistry\n    ModelRegistry.register_model('MyLlama', 'my_plugin.model:MyLlama')\n"
                },
            )
        ]
    ),
    "it rewrites stdout, print and logging": Case(
        [
            package(
                "import builtins, io, logging, os, sys\n"
                "def register():\n"
                "    from vllm import ModelRegistry\n"
                "    sys.stdout = sys.stderr = io.StringIO()\n"
                "    builtins.print = lambda *a, **k: None\n"
                "    logging.disable(logging.CRITICAL)\n"
                "    logging.getLogger().handlers.clear()\n"
                "    ModelRegistry.register_model('MyLlama', 'my_plugin.model:MyLlama')\n"
            )
        ]
    ),
}

WARNED: dict[str, Case] = {
    "it replaces an architecture of vLLM's in silence": Case(
        [
            package(
                "def register():\n    from vllm import ModelRegistry\n    ModelRegistry.register_model('LlamaForCausalLM', 'my_plugin.model:MyLlama')\n"
            )
        ],
        "Warnings",
        arguments=(),
        says=["my-plugin replaces vLLM's own LlamaForCausalLM"],
    ),
    "two plugins bring the same name": Case(
        [
            Made(),
            Made(
                name="other-plugin",
                files={
                    "__init__.py": "def register():\n    from vllm import ModelRegistry\n    ModelRegistry.register_model('MyLlama', 'other_plugin.model:MyLlama')\n"
                },
                entry_points={GENERAL: "other = other_plugin:register"},
            ),
        ],
        "Warnings",
        says=["other-plugin replaces MyLlama of another plugin: the last one loaded wins"],
    ),
    "it changes the environment": Case(
        [
            package(
                "import os\ndef register():\n    from vllm import ModelRegistry\n    os.environ['VLLM_SOMETHING'] = '1'\n    ModelRegistry.register_model('MyLlama', 'my_plugin.model:MyLlama')\n"
            )
        ],
        "Warnings",
        says=["my-plugin changes the environment (VLLM_SOMETHING)"],
    ),
    "it works outside of the range that it declares": Case(
        [Made(metadata="Requires-Dist: vllm<0.12\n")],
        "Warnings",
        says=["my-plugin 1.0 asks for vllm<0.12, and the pod has"],
    ),
    "a late import of a module that has moved": Case(
        [
            Made(
                {
                    "model.py": MODEL
                    + "    def later(self):\n        from vllm.attention.layer import Attention\n        from vllm.utils import FlexibleArgumentParser\n"
                }
            )
        ],
        "Warnings",
        says=[
            "my_plugin/model.py:6 imports Attention from vllm.attention.layer, which this vLLM does not have; it is in vllm.",
            "my_plugin/model.py:7 imports FlexibleArgumentParser from vllm.utils",
        ],
    ),
    "entryPoints leaves out its I/O processor": Case(
        [
            Made(
                names=["my_plugin"],
                entry_points={
                    GENERAL: "my_plugin = my_plugin:register",
                    "vllm.io_processor_plugins": "my_io = my_plugin:io",
                    "vllm.logits_processors": "my_logits = my_plugin:logits",
                },
            )
        ],
        "Warnings",
        says=[
            "its I/O processor my_io is not loaded",
            "loads the logits processor my_logits, which entryPoints does not name",
        ],
    ),
    "it registers nothing, and nothing of it is asked for": Case(
        [package("def register():\n    pass\n")],
        "Warnings",
        arguments=(),
        says=["my-plugin was loaded and registered no architecture"],
    ),
}

UNJUDGED: dict[str, Case] = {
    "the constructor reads an environment variable": Case(
        [constructor("import os", "self.key = os.environ['MY_CODEBOOK']")],
        **one(
            reasons.NEEDS_ENVIRONMENT,
            "plugin",
            "without the environment variable MY_CODEBOOK",
            "my_plugin/model.py:7",
            verdict="Unjudged",
        ),
    ),
    "the constructor reads a file beside the weights": Case(
        [constructor("open('/models/codebook.json')")],
        **one(reasons.NEEDS_FILE, "plugin", "without the file /models/codebook.json", verdict="Unjudged"),
    ),
    "the constructor calls from_pretrained": Case(
        [constructor("from transformers import AutoConfig", "AutoConfig.from_pretrained('org/missing')")],
        **one(reasons.NEEDS_DOWNLOAD, "plugin", "without a download", verdict="Unjudged"),
    ),
    "the constructor computes with weights": Case(
        [constructor("self.scale = self.lm_head.weight.max().item()")],
        **one(reasons.NEEDS_WEIGHTS, "plugin", "without its weights", verdict="Unjudged"),
    ),
    "the constructor asks for a GPU": Case(
        [constructor("import torch", "torch.cuda.get_device_properties(0)")],
        **one(reasons.NEEDS_GPU, "plugin", "without a GPU", verdict="Unjudged"),
    ),
    "its module loads a CUDA library": Case(
        [model_class("import ctypes\nctypes.CDLL('libcuda.so.1.none')\n" + MODEL)],
        **one(reasons.NEEDS_GPU, "plugin", "libcuda.so.1", verdict="Unjudged"),
    ),
}

BROKEN: dict[str, Case] = {
    "the entry point that the spec names is not there": Case(
        [Made(names=["my-plugin"])],
        **one(
            reasons.ENTRY_POINT_MISSING,
            "spec",
            "my-plugin has no entry point 'my-plugin'; it has my_plugin; did you mean my_plugin?",
        ),
        arguments=(),
    ),
    "it has no entry point that vLLM loads": Case(
        [Made(entry_points={"vllm.plugins": "my_plugin = my_plugin:register"})],
        **one(reasons.NO_ENTRY_POINTS, "plugin", "its groups are vllm.plugins"),
        arguments=(),
    ),
    "its module cannot be imported": Case(
        [package("import nowhere_to_be_found\n")],
        **one(
            reasons.PLUGIN_IMPORT_FAILED,
            "plugin",
            "ModuleNotFoundError: No module named 'nowhere_to_be_found' (my_plugin/__init__.py:1)",
        ),
    ),
    "it names one cause, and the real one lies beneath": Case(
        [
            package(
                "try:\n    {}['rope_scaling']\nexcept KeyError:\n    raise ImportError('vllm 0.28 or newer is required') from None\n"
            )
        ],
        **one(
            reasons.PLUGIN_IMPORT_FAILED,
            "plugin",
            "vllm 0.28 or newer is required",
            "first cause: KeyError: 'rope_scaling' (my_plugin/__init__.py:2)",
        ),
    ),
    "its function raises": Case(
        [package("def register():\n    raise RuntimeError('no licence')\n")],
        **one(reasons.PLUGIN_RAISED, "plugin", "RuntimeError: no licence (my_plugin/__init__.py:2)"),
    ),
    "a missing package and a refused version at once": Case(
        [
            package(
                "import no_such_kernels\n",
                metadata="Requires-Dist: no-such-kernels>=2\nRequires-Dist: vllm<0.12\n",
            )
        ],
        "Broken",
        [
            (reasons.PLUGIN_IMPORT_FAILED, "plugin"),
            (reasons.DEPENDENCY_MISSING, "plugin"),
            (reasons.DEPENDENCY_CONFLICT, "plugin"),
        ],
        ["asks for no-such-kernels>=2", "asks for vllm<0.12, and the pod has"],
    ),
    "it logs an error and registers nothing": Case(
        [
            package(
                "import logging\ndef register():\n    try:\n        from vllm.nowhere import Something\n    except ImportError:\n        logging.getLogger('my_plugin').exception('could not register')\n"
            )
        ],
        **one(
            reasons.REGISTERED_NOTHING,
            "plugin",
            "MyLlama is not registered: my-plugin registered nothing; it logged 'could not register'",
            "No module named 'vllm.nowhere'",
            "my_plugin/__init__.py:4",
        ),
    ),
    "it registers what is no class": Case(
        [
            package(
                "def register():\n    from vllm import ModelRegistry\n    ModelRegistry.register_model('MyLlama', object())\n"
            )
        ],
        **one(reasons.NOT_A_MODEL_CLASS, "plugin", "should be a string or PyTorch model class"),
    ),
    "it registers a function by name": Case(
        [model_class("def MyLlama(): ...\n")],
        **one(reasons.NOT_A_MODEL_CLASS, "plugin", "expected a class of torch.nn.Module"),
    ),
    "the module of its class cannot be imported": Case(
        [model_class("from transformers import DroppedLongAgo\n" + MODEL)],
        **one(
            reasons.ARCHITECTURE_IMPORT_FAILED,
            "plugin",
            "my-plugin registers MyLlama, and its class cannot be imported",
            "DroppedLongAgo",
            "my_plugin/model.py:1",
        ),
    ),
    "the module of its class has another class": Case(
        [model_class(MODEL.replace("MyLlama", "MyLLaMA"))],
        **one(
            reasons.ARCHITECTURE_IMPORT_FAILED,
            "plugin",
            "module my_plugin.model has no MyLlama; did you mean MyLLaMA?",
        ),
    ),
    "a method is missing": Case(
        [model_class(MODULE.replace("embed_input_ids", "get_input_embeddings"))],
        **one(
            reasons.INTERFACE_INCOMPLETE,
            "plugin",
            "lacks embed_input_ids(input_ids) (its old name get_input_embeddings is not called)",
        ),
    ),
    "compute_logits is missing in a class that generates": Case(
        [model_class("\n".join(line for line in MODULE.splitlines() if "compute_logits" not in line))],
        **one(reasons.INTERFACE_INCOMPLETE, "plugin", "lacks compute_logits(hidden_states)"),
    ),
    "load_weights is missing, which vLLM finds out in the worker": Case(
        [model_class("\n".join(line for line in MODULE.splitlines() if "load_weights" not in line))],
        **one(reasons.INTERFACE_INCOMPLETE, "plugin", "lacks load_weights(weights)"),
    ),
    "the interface is that of 2024": Case(
        [model_class(OF_2024)],
        **one(
            reasons.INTERFACE_OUTDATED,
            "plugin",
            "forward(kv_caches), forward(attn_metadata)",
            "Port it: `__init__(self, *, vllm_config",
        ),
    ),
    "nothing registers the architecture": Case(
        [Made()],
        **one(
            reasons.ARCHITECTURE_NOT_REGISTERED,
            "plugin",
            "nothing registers MyLama; the plugins bring MyLlama; did you mean MyLlama",
        ),
        arguments=("--hf-overrides", '{"architectures": ["MyLama"]}'),
    ),
    "nobody knows the architecture of config.json": Case(
        arguments=(),
        config={**CONFIG, "architectures": ["NobodyForCausalLM"]},
        **one(
            reasons.ARCHITECTURE_NOT_REGISTERED,
            "spec",
            "nothing registers NobodyForCausalLM; no plugin brings any",
        ),
    ),
    "it passes the configuration and cannot be built": Case(
        [constructor("import transformers", "transformers.DroppedLongAgo()")],
        **one(
            reasons.BUILD_FAILED,
            "plugin",
            "MyLlama cannot be built: AttributeError",
            "DroppedLongAgo",
            "my_plugin/model.py:7",
        ),
    ),
    "vLLM's own parent of it needs what the image lacks": Case(
        [
            model_class(
                "from vllm.model_executor.models.terratorch import Terratorch\nclass MyLlama(Terratorch): ...\n"
            )
        ],
        **one(
            reasons.ENGINE_LACKS_DEPENDENCY,
            "image",
            "vLLM's own code under MyLlama cannot be imported in this image",
            "No module named 'terratorch'",
            "from my_plugin/model.py:1",
        ),
    ),
    "vLLM's own class needs what the image lacks": Case(
        arguments=(),
        config={**CONFIG, "architectures": ["Terratorch"]},
        **one(
            reasons.ENGINE_LACKS_DEPENDENCY,
            "image",
            "vLLM's own code under Terratorch cannot be imported in this image",
            "No module named 'terratorch'",
        ),
    ),
    "vLLM's own parent of it is for other models": Case(
        [
            model_class(
                "from vllm.model_executor.models.mixtral import MixtralForCausalLM\nclass MyLlama(MixtralForCausalLM): ...\n"
            )
        ],
        **one(
            reasons.BUILD_FAILED,
            "model",
            "vLLM's own MixtralForCausalLM, of which MyLlama is made, cannot be built from this config.json",
            "num_local_experts",
        ),
    ),
    "stages are asked for and the class has none": Case(
        [model_class(MODULE)],
        **one(
            reasons.PIPELINE_UNSUPPORTED,
            "plugin",
            "3 pipeline stages are asked for, and MyLlama (my_plugin.model.MyLlama) does not inherit SupportsPP",
        ),
        request={"pipeline": 3},
    ),
    "the spec fixes a size that the class does not take": Case(
        [Made()],
        **one(reasons.TENSOR_REFUSED, "spec", "MyLlama cannot be built for tensor parallel size 3"),
        request={"tensors": [3]},
    ),
    "the plugin breaks its promise to take any size": Case(
        [Made()],
        **one(reasons.TENSOR_REFUSED, "plugin", "MyLlama cannot be built for tensor parallel size 3"),
        request={"tensors": [3], "unevenTensorParallel": True},
    ),
    "an argument that vLLM does not know": Case(
        arguments=("--no-such-flag", "7"),
        **one(reasons.ARGUMENT_REFUSED, "spec", "vllm serve: unrecognized arguments: --no-such-flag 7"),
    ),
    "an argument of the wrong type": Case(
        arguments=("--max-model-len", "many"),
        **one(reasons.ARGUMENT_REFUSED, "spec", "argument --max-model-len"),
    ),
    "an argument that the model refuses": Case(
        arguments=("--max-model-len", "4096"),
        **one(
            reasons.CONFIG_REFUSED,
            "spec",
            "User-specified max_model_len (4096) is greater than the derived max_model_len",
        ),
    ),
    "config.json is not UTF-8": Case(
        arguments=(),
        config=b'{"model_type": "\xff"}',
        **one(reasons.CONFIG_INVALID, "model", "is not UTF-8: byte 16 is 0xff"),
    ),
    "config.json is no JSON": Case(
        arguments=(),
        config=b"{",
        **one(reasons.CONFIG_INVALID, "model", "is no JSON: Expecting property name"),
    ),
    "config.json has 10 MB": Case(
        arguments=(),
        config=b" " * 10_000_000,
        **one(reasons.CONFIG_INVALID, "model", "has 10.0 MB; at most 4.2 MB are read"),
    ),
    "there is no config.json": Case(
        arguments=(),
        config=None,
        **one(reasons.CONFIG_MISSING, "model", "has no config.json; there is model.safetensors"),
    ),
    "there are no weights": Case(
        arguments=(),
        weights=False,
        **one(reasons.WEIGHTS_MISSING, "model", "has a config.json and no weights"),
    ),
}

HUB: dict[str, tuple[str, Case]] = {
    "the model is on the hub": ("org/good", Case(arguments=("--load-format", "dummy"))),
    "the hub has no such model": ("org/missing", Case(arguments=(), **one(reasons.MODEL_NOT_FOUND, "spec", "the hub knows no model org/missing, or does not show it (no token)"))),
    "the model is private": ("org/private", Case(arguments=(), **one(reasons.MODEL_NOT_FOUND, "spec", "org/private"))),
    "the model is gated and there is no token": ("org/gated", Case(arguments=(), **one(reasons.MODEL_GATED, "spec", "org/gated is gated, and the hub was asked with no token"))),
    "the model has no such revision": ("org/good", Case(arguments=("--revision", "v7"), **one(reasons.REVISION_NOT_FOUND, "spec", "org/good has no revision v7"))),
    "the model has no config.json on the hub": ("org/without-config", Case(arguments=(), **one(reasons.CONFIG_MISSING, "model", "org/without-config has no config.json"))),
    "the hub does not answer": ("org/unreachable", Case(arguments=(), **one(reasons.HUB_UNREACHABLE, "network", "org/unreachable"))),
    "the folder is not in the pod": ("/models/nowhere", Case(arguments=(), **one(reasons.MODEL_NOT_FOUND, "spec", "there is no folder /models/nowhere"))),
}  # fmt: skip
