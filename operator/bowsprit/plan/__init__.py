"""The pure core: from facts, wishes and one snapshot of the cluster to replica plans, for all models at once.

Memory per stage, the choice of tp and pp, the layer split, packing pods on nodes and the arbitration
between models live here, with the reason in words for every choice and every refusal. There is no kopf,
Kubernetes client, clock, random number or I/O in it, so that the operator, the CLI and the tests run the
same code and any decision can be recomputed from what was observed.
"""
