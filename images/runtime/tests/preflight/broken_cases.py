"""What real plugin packages and models do and must not, each with its reason and whose fault it is.

One entry a behaviour, judged by real vLLM; most were seen in public packages. The sentence is the test's id.
"""

from __future__ import annotations

from bowsprit_runtime import reasons
from images.runtime.tests.preflight.case import MODULE, OF_2024, Case, constructor, model_class, one, package
from images.runtime.tests.preflight.judging import CONFIG, MODEL, Made

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
        weights={},
        **one(reasons.WEIGHTS_MISSING, "model", "has a config.json and no weights"),
    ),
    "there is only what training leaves beside weights": Case(
        arguments=(),
        weights={"optimizer.pt": b"", "training_args.bin": b""},
        **one(reasons.WEIGHTS_MISSING, "model", "has a config.json and no weights"),
    ),
    "the weights are a pointer of git": Case(
        arguments=(),
        weights={"model.safetensors": b"version https://git-lfs.github.com/spec/v1\n"},
        **one(reasons.WEIGHTS_DAMAGED, "model", "model.safetensors is the pointer that git leaves"),
    ),
    "the weights are cut off": Case(
        arguments=(),
        weights={"model.safetensors": (99).to_bytes(8, "little") + b'{"a": {'},
        **one(reasons.WEIGHTS_DAMAGED, "model", "model.safetensors is cut off, or no safetensors file"),
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
