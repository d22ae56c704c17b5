"""python -m e2e.local build: everything that the local cluster is made of, into the caches."""

from __future__ import annotations

import sys
import time

from e2e.cluster.background import NotPossible
from e2e.cluster.build import BuildFailed
from e2e.images.buildah import ImageFailed, cache_directory
from e2e.local.materials import ensure_materials

PROBLEMS = (BuildFailed, ImageFailed, NotPossible)


def main() -> int:
    """The exit status is 0 when everything is there."""
    if sys.argv[1:] != ["build"]:
        print(__doc__, file=sys.stderr)
        return 2
    began = time.monotonic()
    try:
        ensure_materials()
    except PROBLEMS as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"All is in {cache_directory().parent}, after {time.monotonic() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
