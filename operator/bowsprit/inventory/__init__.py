"""From Node and Pod objects, as plain dicts, to the planning snapshot: which GPUs exist and which are free.

It is a pure layer of its own, apart from the watch caches in `cluster`, because the CLI reads the same
objects from files: `kubectl get nodes,pods -A -o json` is a complete input. What a label says of a GPU
product, what a pod holds, and which nodes do not count, is decided here once for both.
"""
