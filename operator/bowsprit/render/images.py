"""Images by digest: every rank runs the bits that preflight has proven, even after their tag has moved."""

from __future__ import annotations

import re
from collections.abc import Mapping

_DIGEST = re.compile(r"(?:[a-z-]+://)?(?P<repository>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})", re.ASCII)
_DEFAULT_REGISTRY, _DEFAULT_FOLDER = "docker.io", "library"


def pinned(image: str, image_id: str) -> str | None:
    """`image` by the digest in a container's status.imageID; None where that names none of its repository.

    Of an image for several machines this is the digest of the index, and nodes of another kind take their own
    part. An image that was loaded into the node by hand has no digest that a registry would know; it keeps
    its tag.
    """
    match = _DIGEST.fullmatch(image_id)
    if match is None or _full(match["repository"]) != _full(_repository(image)):
        return None
    return f"{_repository(image)}@{match['digest']}"


def pinned_images(images: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """By container, from (image, imageID) of each; those that cannot be pinned keep their tags and are left
    out."""
    found = {container: pinned(*named) for container, named in images.items()}
    return {container: image for container, image in found.items() if image is not None}


def _repository(image: str) -> str:
    """Without tag and digest; a colon before the last slash is a port."""
    named = image.partition("@")[0]
    folder, slash, name = named.rpartition("/")
    return f"{folder}{slash}{name.partition(':')[0]}"


def _full(repository: str) -> str:
    """As the container runtime spells it: vllm/vllm-openai is docker.io/vllm/vllm-openai."""
    first, slash, _ = repository.partition("/")
    if not slash:
        return f"{_DEFAULT_REGISTRY}/{_DEFAULT_FOLDER}/{repository}"
    is_host = "." in first or ":" in first or first == "localhost"
    return repository if is_host else f"{_DEFAULT_REGISTRY}/{repository}"
