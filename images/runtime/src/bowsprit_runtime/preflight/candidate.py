"""The model class that will serve, found among what vLLM and the plugins registered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """The class that will serve, and whose it is."""

    name: str
    model: type
    plugin: str
    """Name of the plugin that registered it; empty for vLLM's own."""
    folders: tuple[str, ...]
    """Of all plugins."""
