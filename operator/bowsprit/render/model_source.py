"""Where the weights come from: what `model.uri` means for the engine's command line and the pod's volumes."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

MODEL_MOUNT = "/mnt/model"
IMAGE_FOLDER = "/models"
"""Where an image keeps its model: the convention of KServe's modelcars."""

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)
_BUCKET = re.compile(r"[A-Za-z0-9][^\s]*", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*", re.ASCII)
_STREAMED = ("s3", "gs", "az")


@dataclass(frozen=True, slots=True)
class ModelSource:
    argument: str
    """The model as `vllm serve` takes it: a repository, a path in the container or a bucket's URL."""
    claim: str | None = None
    """PersistentVolumeClaim that is mounted, read-only, at MODEL_MOUNT."""
    image: str | None = None
    """Image whose IMAGE_FOLDER is copied to MODEL_MOUNT."""
    streamed: bool = False
    """Read from object storage by vLLM's own streamer (--load-format runai_streamer)."""
    takes_revision: bool = False

    @property
    def local(self) -> bool:
        """The pod has the model before vLLM starts."""
        return bool(self.claim or self.image)


def model_source(uri: str) -> ModelSource | None:
    """None when the URI is none of hf://org/name, pvc://claim/path, oci://image, s3://…, gs://…, az://…"""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return None
    if scheme == "hf":
        return ModelSource(rest, takes_revision=True) if _REPOSITORY.fullmatch(rest) else None
    if scheme == "pvc":
        return _on_claim(rest)
    if scheme == "oci" and _IMAGE.fullmatch(rest):
        return ModelSource(f"{MODEL_MOUNT}{IMAGE_FOLDER}", image=rest)
    if scheme in _STREAMED and _BUCKET.fullmatch(rest):
        return ModelSource(uri, streamed=True)
    return None


def _on_claim(rest: str) -> ModelSource | None:
    claim, _, path = rest.partition("/")
    if not _CLAIM.fullmatch(claim) or ".." in path.split("/"):
        return None
    return ModelSource(posixpath.normpath(f"{MODEL_MOUNT}/{path}"), claim=claim)
