"""The plugin interface of vLLM pull request 7438, on vLLM as it is.

An entry point in the group `vllm.model_architectures` holds a ModelPlugin. `register` is an entry point of
the runtime's own in `vllm.general_plugins`, which vLLM runs in each of its processes; it loads that group as
vLLM loads its own (VLLM_PLUGINS, logging of what cannot be imported) and registers what it finds. Importing
this module also offers `vllm.plugins.model_plugin`: vLLM imports all plugins before it runs the first.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from typing import Any

from bowsprit_runtime.plugins import MODEL_ARCHITECTURES_GROUP

_PROPOSED = "vllm.plugins.model_plugin"


def register() -> None:
    """Registers the architecture of every plugin of the group; vLLM may ask again and again.

    Raises TypeError and ValueError with text for the plugin's author: what vLLM does not catch, it shows.
    """
    from vllm import ModelRegistry
    from vllm.plugins import load_plugins_by_group

    for architecture, implementation in architectures(
        load_plugins_by_group(MODEL_ARCHITECTURES_GROUP)
    ).items():
        ModelRegistry.register_model(architecture, implementation)


def architectures(plugins: Mapping[str, Any]) -> dict[str, Any]:
    """Architecture -> its class, of plugins by the name of their entry point."""
    owners: dict[str, str] = {}
    found: dict[str, Any] = {}
    for name, plugin in plugins.items():
        try:
            architecture, found[plugin.architecture_name] = (
                plugin.architecture_name,
                plugin.implementation_cls,
            )
        except AttributeError:
            raise TypeError(
                f"entry point {name} of {MODEL_ARCHITECTURES_GROUP} is {plugin!r}, "
                "not a ModelPlugin(architecture_name=…, implementation_cls=…)"
            ) from None
        if architecture in owners:
            raise ValueError(
                f"entry points {owners[architecture]} and {name} of {MODEL_ARCHITECTURES_GROUP} both bring "
                f"{architecture}: name one of them in plugins[].entryPoints"
            )
        owners[architecture] = name
    return found


def _offer() -> None:
    """Makes `from vllm.plugins.model_plugin import ModelPlugin` work where vLLM has no such module."""
    if _PROPOSED not in sys.modules and importlib.util.find_spec(_PROPOSED) is None:
        sys.modules[_PROPOSED] = importlib.import_module("bowsprit_runtime.model_plugin")


_offer()
