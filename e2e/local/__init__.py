"""The cluster on this machine that the tests run against: real nodes, images, vLLM and the operator."""
