"""The only I/O with Kubernetes: the client, the list-watch caches, and one consistent reading.

Wire objects stay plain dicts and pods are projected to the few fields that planning needs while they stream
in, because typed models cost a millisecond a pod and there are tens of thousands. Nothing is decided here:
it fetches, applies and deletes, and hands what it saw to the pure layers.
"""
