"""From observed objects and the plan to conditions, phase and columns: what the operator tells its user.

Conditions are the product's voice, so all their words live in one place and are tested as text: each has a
reason from one module of constants, a message with numbers and the next step. Being pure it can be
recomputed from what is observed; nothing that changes on every pass goes into status.
"""
