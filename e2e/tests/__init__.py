"""End-to-end tests: real kubelets, real containers, real vLLM."""
