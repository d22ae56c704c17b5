"""End-to-end tests, and the cluster on this machine that they (and `make demo`) run against."""
