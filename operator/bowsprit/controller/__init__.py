"""The loop that keeps deployments right: one-line kopf handlers, a work queue, and the reconcile passes.

Events are only triggers that put a key on the queue. Each pass gathers what is observed, asks the pure
layers what should be, and applies the difference, so killing the operator at any instant loses nothing. The
clock enters here and is handed down as an argument.
"""
