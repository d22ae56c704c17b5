"""Nodes that really run containers, on this machine and without a container engine.

A node is a bundle of Linux namespaces (`namespaces`) that holds containerd, a kubelet and kube-proxy at
their default places, as a machine would; its pods are routed (`network`), and CoreDNS answers on the host.
Whatever a node mounts, routes or runs is in its namespaces, so it ends with them: also when the Python
process that started it is killed.
"""
