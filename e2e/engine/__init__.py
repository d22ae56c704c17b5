"""The real vLLM, for CPUs, that the end-to-end tests serve with."""
