"""What runs inside engine pods, under the engine image's own Python: install plugins, prove them, start vLLM.

Standard library only, and Python 3.9 is enough: the engine image is the user's. Nothing here is imported by
the operator; the two meet in files, environment variables and one report (docs/decisions/0012).
"""
