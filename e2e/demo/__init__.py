"""`make demo`: what Bowsprit does, shown as it happens on a cluster that starts on this machine."""
