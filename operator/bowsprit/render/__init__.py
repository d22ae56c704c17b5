"""From a revision and its replica plans to Kubernetes manifests, as plain dicts.

Rendering is a pure function, so `bowsprit render` prints exactly what the operator would apply, golden
files can pin every byte, and rendering twice changes nothing on the cluster. It decides nothing: a manifest
that needs a choice means that the choice belongs in `plan`.
"""
