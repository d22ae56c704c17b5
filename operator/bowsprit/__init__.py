"""Bowsprit: a Kubernetes operator for plugin-aware vLLM deployments.

A ModelDeployment names a model, the plugins that bring its architecture, and an architecture override.
Bowsprit proves that the plugin works, computes the parallel layout from the GPUs that are really free,
places the pods so that every GPU counts, starts vLLM, and keeps it right afterwards.

The packages below are layers, and imports point one way only: cli > controller > cluster > status, render,
inventory > plan > facts > api. Everything below `cluster` is pure: no Kubernetes client, no clock, no
randomness.
"""

__version__ = "0.1.0"
