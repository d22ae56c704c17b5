"""Benches: each figure beside its reference in one run. `make bench ARGS="planning_scale
packing_quality"`."""
