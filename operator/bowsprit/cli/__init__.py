"""The `bowsprit` command (and `kubectl bowsprit`): the same pure core, on files or on a live cluster.

It exists so that a plan, an estimate or a manifest can be seen before anything is installed, and so that a
bug report can be replayed. It is the top layer: it parses arguments, reads files and prints; `bowsprit run`
starts the controller.
"""
