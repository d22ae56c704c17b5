from __future__ import annotations

import pytest

from bowsprit.render.images import pinned, pinned_images

DIGEST = f"sha256:{'0123456789abcdef' * 4}"

PINNED: dict[str, tuple[str, str, str | None]] = {
    "a tag": (
        "registry.example.com/team/vllm:1",
        f"registry.example.com/team/vllm@{DIGEST}",
        f"registry.example.com/team/vllm@{DIGEST}",
    ),
    "no tag, and a port": ("localhost:5000/a", f"localhost:5000/a@{DIGEST}", f"localhost:5000/a@{DIGEST}"),
    "the default registry": (
        "vllm/vllm-openai:v0.32.0",
        f"docker.io/vllm/vllm-openai@{DIGEST}",
        f"vllm/vllm-openai@{DIGEST}",
    ),
    "the default folder": ("busybox", f"docker.io/library/busybox@{DIGEST}", f"busybox@{DIGEST}"),
    "a digest of the user's own": (
        f"registry.example.com/a:1@{DIGEST}",
        f"registry.example.com/a@{DIGEST}",
        f"registry.example.com/a@{DIGEST}",
    ),
    "Docker's spelling": ("a/b:1", f"docker-pullable://a/b@{DIGEST}", f"a/b@{DIGEST}"),
    "an image loaded by hand, known by its content only": ("a/b:1", DIGEST, None),
    "an image loaded by hand under a name of the day": (
        "a/b:1",
        f"docker.io/library/import-2026-11-30@{DIGEST}",
        None,
    ),
    "another repository": ("a/b:1", f"docker.io/a/c@{DIGEST}", None),
    "another registry": ("a/b:1", f"registry.example.com/a/b@{DIGEST}", None),
    "a short digest": ("a/b:1", "docker.io/a/b@sha256:0123", None),
    "nothing, before it was pulled": ("a/b:1", "", None),
    "more than an image": ("a/b:1", f"docker.io/a/b@{DIGEST} --privileged", None),
}


@pytest.mark.parametrize("case", PINNED)
def test_pinned(case: str) -> None:
    image, image_id, wanted = PINNED[case]
    assert pinned(image, image_id) == wanted


def test_images_that_cannot_be_pinned_keep_their_tags() -> None:
    named = {"engine": ("a/b:1", f"docker.io/a/b@{DIGEST}"), "plugin-0": ("c:1", DIGEST)}
    assert pinned_images(named) == {"engine": f"a/b@{DIGEST}"}
