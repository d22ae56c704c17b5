"""Small plugins that each behave in a way of their own, as one image: a folder of wheels for each.

A ModelDeployment chooses one by plugins[].path. The image is made of nothing else, as a plugin's may be.

    python -m e2e.tests.small_plugins DIR    # writes what `podman build DIR` makes the image of
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from e2e.images.recipe import Containerfile, Recipe
from images.runtime.tests import made

ENTRY_POINT = "my_plugin"
ARCHITECTURE = "MyLlama"

Sources = Mapping[str, str]
"""File in the package my_plugin -> its text; what is not said is that of the good plugin."""

GOOD: Sources = {
    "__init__.py": """
def register():
    from vllm import ModelRegistry
    ModelRegistry.register_model("MyLlama", "my_plugin.model:MyLlama")
""",
    "model.py": """
from vllm.model_executor.models.llama import LlamaForCausalLM
class MyLlama(LlamaForCausalLM):
    pass
""",
}

ANY_PYTHON, ANOTHER_PYTHON = "py3-none-any", "cp38-cp38-manylinux_2_17_x86_64"
NO_WHEELS = "no-wheels"

PLUGINS: Mapping[str, Sources] = {
    "good": {},
    "for-another-python": {},
    "cannot-be-imported": {"__init__.py": "import nowhere_to_be_found\n"},
    "raises": {"__init__.py": "def register():\n    raise RuntimeError('no licence')\n"},
    "no-class": {"model.py": "def MyLlama(): ...\n"},
    "no-method": {
        "model.py": """
import torch
class MyLlama(torch.nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
    def get_input_embeddings(self, input_ids): ...
    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None): ...
    def compute_logits(self, hidden_states): ...
    def load_weights(self, weights): return set()
"""
    },
    "hangs": {"__init__.py": "import threading\nthreading.Event().wait()\n"},
    "allocates-without-end": {
        "__init__.py": "kept = []\nwhile True:\n    kept.append(bytearray(b'x') * (8 << 20))\n"
    },
    "writes-into-the-engine": {
        "__init__.py": """
def register():
    import pathlib, vllm
    (pathlib.Path(vllm.__file__).parent / "patched.py").write_text("")
"""
    },
    # Long before it, so that the words are cut within the secret.
    "tells-a-secret": {
        "__init__.py": """
import logging, os
def register():
    login = os.environ["MY_LOGIN"]
    print(os.environ, login, flush=True)
    logging.getLogger("my_plugin").error("cannot log in with %s", login)
    raise RuntimeError("cannot log in " + "again and " * 16 + "again with " + login)
"""
    },
    # Process 1 of the container is preflight itself.
    "tells-a-secret-and-ends-preflight": {
        "__init__.py": """
import os, signal, time
print(os.environ["MY_LOGIN"], flush=True)
time.sleep(1)
os.kill(1, signal.SIGINT)
time.sleep(60)
"""
    },
}


@dataclass(frozen=True)
class SmallPlugins:
    """The image's recipe."""

    name: str = "small-plugins"
    bases: Mapping[str, Recipe] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        with _written() as image:
            return image.tag

    def build(self, reference: str) -> None:
        with _written() as image:
            image.build(reference)


@contextmanager
def _written() -> Iterator[Containerfile]:
    with tempfile.TemporaryDirectory(prefix="bowsprit-plugins-") as folder:
        write(Path(folder))
        yield Containerfile(SmallPlugins.name, Path(folder))


def write(context: Path) -> None:
    """The wheels, and a Containerfile that takes them."""
    for name, sources in PLUGINS.items():
        made.wheel(
            context / "plugins" / name,
            "my-plugin",
            files={f"my_plugin/{file}": text for file, text in {**GOOD, **sources}.items()},
            entry_points={"vllm.general_plugins": f"{ENTRY_POINT} = my_plugin:register"},
            tag=ANOTHER_PYTHON if name == "for-another-python" else ANY_PYTHON,
        )
    (context / "plugins" / NO_WHEELS).mkdir(exist_ok=True)
    (context / "plugins" / NO_WHEELS / "README").write_text("Wheels come later.\n")
    (context / "Containerfile").write_text("FROM scratch\nCOPY plugins /\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the build context of the image of small plugins.")
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
