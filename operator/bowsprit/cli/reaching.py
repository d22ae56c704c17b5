"""What a command says when it does not get through to the cluster: what happened, and what to look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes.aio.config import ConfigException

from bowsprit.cli.problems import BadInput, Place, Problem
from bowsprit.cluster.errors import ClusterError, Unreachable

_CHOOSE = "choose a cluster with --kubeconfig and --context"
_LOOK = "see that the cluster runs and that this is its address; --kubeconfig and --context choose another"


@contextmanager
def unknown_cluster(without: str = "") -> Iterator[None]:
    """No kubeconfig, or one that cannot be used, as BadInput. `without` tells how to do without it."""
    try:
        yield
    except ConfigException as error:
        raise _told(error, _CHOOSE + without) from error


@contextmanager
def cluster_errors(refused: str, without: str = "") -> Iterator[None]:
    """Whatever ends a talk with the cluster, as BadInput.

    `refused` is what helps when the API server has answered and said no.
    """
    with unknown_cluster(without):
        try:
            yield
        except Unreachable as error:
            raise _told(error, _LOOK + without) from error
        except ClusterError as error:
            raise _told(error, refused + without) from error


def _told(error: Exception, cure: str) -> BadInput:
    said = " ".join(str(error).split()).rstrip(".")
    return BadInput([Problem(Place("live cluster"), "", f"{said}; {cure}")])
