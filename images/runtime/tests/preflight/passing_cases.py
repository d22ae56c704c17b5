"""What real plugin packages do and may do: fine, with warnings, or not to be judged here.

One entry a behaviour, judged by real vLLM; most were seen in public packages. The sentence is the test's id.
"""

from __future__ import annotations

from bowsprit_runtime import reasons
from images.runtime.tests.preflight.case import (
    GENERAL,
    MODULE,
    MY_LLAMA,
    POOLING,
    Case,
    constructor,
    model_class,
    one,
    package,
)
from images.runtime.tests.preflight.judging import MODEL, Made

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
