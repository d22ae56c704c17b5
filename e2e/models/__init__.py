"""The models that tests serve: made here, so that nothing is downloaded."""
