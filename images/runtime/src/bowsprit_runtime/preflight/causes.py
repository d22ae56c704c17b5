"""The readable cut of an exception: its first cause, with file and line, and what it says was lacking.

A package may say one cause while the real one lies beneath ("0.28 or newer is required" over a KeyError), so
the chain is followed to its beginning, also through `raise … from None`.
"""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight import redact
from bowsprit_runtime.report import cut

TEXT_LIMIT = 300
"""Characters of one exception's text; some list all architectures."""


class Place(NamedTuple):
    file: str
    line: int


class Lack(NamedTuple):
    """What could not be judged, and without what."""

    reason: str
    without: str


def chain(error: BaseException) -> list[BaseException]:
    """The exceptions from the one that was raised last to the one that began it."""
    found: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in found:
        found.append(step)
        step = _wrapped(step) or step.__cause__ or step.__context__
    return found


def _wrapped(error: BaseException) -> BaseException | None:
    """The exception that pydantic keeps inside its ValidationError."""
    errors = getattr(error, "errors", None)
    if type(error).__name__ != "ValidationError" or not callable(errors):
        return None
    inner = [one.get("ctx", {}).get("error") for one in errors()]
    return next((one for one in inner if isinstance(one, BaseException)), None)


def words(error: BaseException) -> str:
    """What the exception says, in one line and without secrets."""
    is_key = isinstance(error, KeyError) and len(error.args) == 1
    said = redact.of_this_process(repr(error.args[0]) if is_key else str(error))
    return cut(" ".join(said.split()), TEXT_LIMIT)


def places(error: BaseException) -> list[Place]:
    """Where the exception went through, the raising line last."""
    if isinstance(error, SyntaxError) and error.filename:
        return [Place(error.filename, error.lineno or 0)]
    frames = traceback.extract_tb(error.__traceback__)
    return [Place(frame.filename, frame.lineno or 0) for frame in frames]


def origin(error: BaseException) -> Place | None:
    """The line of somebody's own code that began it: neither this runtime's nor the standard library's."""
    return next((place for place in reversed(places(chain(error)[-1])) if not _common(place.file)), None)


_OWN = str(Path(__file__).resolve().parent.parent)
_STANDARD = tuple({sysconfig.get_paths()["stdlib"], str(Path(os.__file__).parent)})


def _common(file: str) -> bool:
    if file.startswith(("<frozen", _OWN)):
        return True
    return file.startswith(_STANDARD) and "site-packages" not in file and "dist-packages" not in file


def within(file: str, folders: Sequence[str]) -> bool:
    return any(file.startswith(folder.rstrip("/") + "/") for folder in folders)


def short(file: str) -> str:
    """The path as a plugin author knows it: from the package on."""
    for mark in ("/site-packages/", "/dist-packages/"):
        if mark in file:
            return file.rsplit(mark, 1)[1]
    return re.sub(r"^.*/plugins/\d+/", "", file)


def told(error: BaseException, plugin_folders: Sequence[str] = ()) -> str:
    """`Type: words (file:line)`, and the first cause when it is another one."""
    links = chain(error)
    first = links[-1]
    said = _named(first, plugin_folders)
    outer = next((link for link in links[:-1] if words(link) and words(link) != words(first)), None)
    if outer is None or words(first) in words(outer):
        return said
    return f"{_named(outer, plugin_folders)}; first cause: {said}"


def _named(error: BaseException, plugin_folders: Sequence[str]) -> str:
    went = [place for place in places(error) if not _common(place.file)]
    told_places = list(_ends(went, plugin_folders))
    where = ", from ".join(f"{short(place.file)}:{place.line}" for place in told_places)
    text = words(error)
    name = type(error).__name__
    return f"{name}{': ' if text else ''}{text}" + (f" ({where})" if where else "")


def _ends(went: Sequence[Place], plugin_folders: Sequence[str]) -> Iterator[Place]:
    """The raising line, and the plugin's own line that led there when they differ."""
    if not went:
        return
    yield went[-1]
    own = next((place for place in reversed(went) if within(place.file, plugin_folders)), None)
    if own is not None and own != went[-1]:
        yield own


# ---- what was lacking --------------------------------------------------------------------------------------

_GPU = re.compile(
    r"libcuda\.so|libnvidia-ml|libamdhip|No CUDA GPUs|not compiled with CUDA|NVIDIA driver|CUDA driver"
    r"|No HIP GPUs|active drivers|CUDA error|HIP error|CUDA_HOME|Cannot access accelerator"
    r"|no CUDA-capable device|requires Triton"
    r"|not (?:supported|implemented)[^.]{0,40} (?:on|for|by|in) (?:the )?CPU"
    r"|NVML|cuda runtime|not linked with CUDA",
    re.IGNORECASE,
)
_WEIGHTS = re.compile(
    r"meta tensor|meta device|Tensor on meta|have storage|device=.meta|on the meta", re.IGNORECASE
)
_ENVIRONMENT = re.compile(r"environment variable[s]?:? [`'\"$]?([A-Za-z_][A-Za-z0-9_]{2,})")
_HUB_ERRORS = frozenset(
    {"GatedRepoError", "RepositoryNotFoundError", "RevisionNotFoundError", "EntryNotFoundError"}
    | {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "HfHubHTTPError", "HFValidationError"}
    | {"RemoteEntryNotFoundError", "ConnectionError", "ConnectError", "ConnectTimeout", "ReadTimeout"}
    | {"MaxRetryError", "ProxyError", "gaierror", "URLError", "HTTPError"}
)
_HUB_WORDS = re.compile(
    r"not a valid model identifier|couldn't connect to|does not appear to have a file named|offline mode"
    r"|Can't load (tokenizer|image processor|feature extractor|the configuration|processor)",
    re.IGNORECASE,
)


def lack_of_gpu(error: BaseException) -> Lack | None:
    gpu = any(_GPU.search(str(link)) for link in chain(error))
    return Lack(reasons.NEEDS_GPU, "a GPU") if gpu else None


def lack_in_constructor(error: BaseException) -> Lack | None:
    """What a constructor that failed on the meta device would have needed; None when it is simply wrong."""
    for link in reversed(chain(error)):
        lack = _lack(link)
        if lack is not None:
            return lack
    return None


def _lack(error: BaseException) -> Lack | None:
    variable = _missing_variable(error)
    if variable:
        return Lack(reasons.NEEDS_ENVIRONMENT, f"the environment variable {variable}")
    if isinstance(error, FileNotFoundError) and error.filename:
        return Lack(reasons.NEEDS_FILE, f"the file {os.fsdecode(error.filename)}")
    if type(error).__name__ in _HUB_ERRORS or _HUB_WORDS.search(str(error)):
        return Lack(reasons.NEEDS_DOWNLOAD, "a download")
    if _WEIGHTS.search(str(error)):
        return Lack(reasons.NEEDS_WEIGHTS, "its weights")
    return lack_of_gpu(error) if _GPU.search(str(error)) else None


_OS = (os.__file__, "<frozen os>")
"""Where os.environ raises."""


def _missing_variable(error: BaseException) -> str | None:
    if isinstance(error, KeyError) and error.args:
        raised = places(error)[-1:]
        if raised and raised[0].file in _OS:
            return os.fsdecode(error.args[0])
    found = _ENVIRONMENT.search(str(error))
    return found.group(1) if found else None
