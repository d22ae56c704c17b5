"""The images of the end-to-end tests, built by buildah without a container engine, and kept as archives in
the cache."""
