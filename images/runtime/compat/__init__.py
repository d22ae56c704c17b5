"""The engines that the runtime is tried with: pinned, and installed once into the cache."""
