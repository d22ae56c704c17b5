"""A real Kubernetes control plane with fake GPU nodes, started as plain processes on this machine.

No container engine and no ready-made binaries: the programs are built once from their Go modules (`build`)
and started in a few seconds (`control_plane`). `python -m e2e.cluster` is the same from a shell.
"""
