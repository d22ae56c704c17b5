"""config.json and the weights' names, before the engine is asked: what is wrong with a file is said of it.

The hub is asked by the image's own huggingface_hub, with the pod's own token and cache, so nothing is fetched
twice. Only config.json is read; of the weights only whether they are there (checkpoint.py looks into them).
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight.causes import chain, words
from bowsprit_runtime.report import Fault

MAX_BYTES = 4 * 1024 * 1024
"""The largest published config.json has 300 KiB; what the operator reads ends here too."""

INDEX = "model.safetensors.index.json"
_MAX_INDEX_BYTES = 64 * 1024 * 1024
"""The largest published one has 10 MB."""

_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf", "*.npz", "*.tensors")
_OF_TRAINING = ("training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt", "scaler.pt")
"""Left beside weights by training; vLLM loads none of them (weight_utils.py)."""
_LABELS = ("id2label", "label2id", "_name_or_path", "transformers_version")
"""Long or private, and nothing that planning reads."""


def read_config(model: str, revision: str | None, config_folder: str | None) -> dict[str, Any] | None:
    """config.json of a folder or of the hub; None where vLLM alone knows the way. Raises Fault."""
    source = config_folder or model
    if "://" in source or os.environ.get("VLLM_USE_MODELSCOPE", "").lower() in ("1", "true"):
        return None
    if Path(source).is_dir():
        return _folder_config(Path(source))
    if source.startswith(("/", ".")):
        raise Fault(reasons.MODEL_NOT_FOUND, "spec", f"there is no folder {source} in the pod")
    return parsed(_from_hub(source, revision), source)


def _folder_config(folder: Path) -> dict[str, Any] | None:
    file = folder / "config.json"
    if not file.exists():
        if (folder / "params.json").exists() or any(folder.glob("*.gguf")):
            return None
        there = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
        raise Fault(reasons.CONFIG_MISSING, "model", f"{folder} has no config.json; there is {there}")
    return parsed(file, str(folder))


def parsed(file: Path, model: str) -> dict[str, Any]:
    """The file as a JSON object. Raises Fault."""
    size = file.stat().st_size
    if size > MAX_BYTES:
        message = f"config.json of {model} has {size / 1e6:.1f} MB; at most {MAX_BYTES / 1e6:.1f} MB are read"
        raise Fault(reasons.CONFIG_INVALID, "model", message)
    try:
        config = json.loads(file.read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        message = (
            f"config.json of {model} is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"
        )
        raise Fault(reasons.CONFIG_INVALID, "model", message) from None
    except (ValueError, RecursionError) as error:
        raise Fault(
            reasons.CONFIG_INVALID, "model", f"config.json of {model} is no JSON: {words(error)}"
        ) from None
    if not isinstance(config, dict):
        kind = type(config).__name__
        raise Fault(
            reasons.CONFIG_INVALID, "model", f"config.json of {model} holds a {kind}; expected an object"
        )
    return config


def _from_hub(model: str, revision: str | None) -> Path:
    from huggingface_hub import hf_hub_download  # type: ignore[import-not-found,unused-ignore]

    try:
        return Path(hf_hub_download(model, "config.json", revision=revision))
    except Exception as error:
        if type(error).__name__ in ("EntryNotFoundError", "RemoteEntryNotFoundError"):
            raise Fault(reasons.CONFIG_MISSING, "model", f"{model} has no config.json on the hub") from error
        raise hub_fault(error, model, revision) or error from error


def hub_fault(error: BaseException, model: str, revision: str | None) -> Fault | None:
    """What an error of the hub means; None when it is none of the hub's."""
    names = {kind.__name__ for link in chain(error) for kind in type(link).__mro__}
    token = "the token that the pod has" if os.environ.get("HF_TOKEN") else "no token"
    if "GatedRepoError" in names:
        return Fault(reasons.MODEL_GATED, "spec", f"{model} is gated, and the hub was asked with {token}")
    if "RevisionNotFoundError" in names:
        return Fault(reasons.REVISION_NOT_FOUND, "spec", f"{model} has no revision {revision}")
    if "RepositoryNotFoundError" in names:
        message = f"the hub knows no model {model}, or does not show it ({token})"
        return Fault(reasons.MODEL_NOT_FOUND, "spec", message)
    if "HFValidationError" in names:
        return Fault(
            reasons.MODEL_NOT_FOUND, "spec", f"{model} is neither a folder in the pod nor a name on the hub"
        )
    return _missing_or_unreachable(names, error, model)


_UNREACHABLE = frozenset(
    {
        "HfHubHTTPError",
        "ConnectionError",
        "ConnectError",
        "ConnectTimeout",
        "ReadTimeout",
        "Timeout",
        "TimeoutError",
    }
    | {"ProxyError", "SSLError", "MaxRetryError", "gaierror", "RemoteProtocolError", "NetworkError"}
)


def _missing_or_unreachable(names: set[str], error: BaseException, model: str) -> Fault | None:
    offline = os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    if "LocalEntryNotFoundError" in names or "OfflineModeIsEnabled" in names:
        if offline:
            message = f"{model} is not in the pod's cache, and HF_HUB_OFFLINE keeps it from being fetched"
            return Fault(reasons.MODEL_NOT_FOUND, "spec", message)
    elif "EntryNotFoundError" in names:
        return None
    if names & _UNREACHABLE or "LocalEntryNotFoundError" in names:
        message = f"{model}: the hub at {_hub()} does not answer: {words(chain(error)[-1])}"
        return Fault(reasons.HUB_UNREACHABLE, "network", message)
    return None


def _hub() -> str:
    """Host and port, as the pod knows them."""
    address = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    return address.split("://")[-1].split("/")[0].rpartition("@")[2]


def weights_fault(model: str) -> Fault | None:
    """Of a folder: no weights at all, or an index that names files which are not there."""
    folder = Path(model)
    if not folder.is_dir():
        return None
    if (folder / INDEX).exists():
        return _incomplete(folder)
    if any(not file.name.endswith(_OF_TRAINING) for pattern in _WEIGHTS for file in folder.glob(pattern)):
        return None
    return Fault(
        reasons.WEIGHTS_MISSING,
        "model",
        f"{folder} has a config.json and no weights (*.safetensors, *.bin …)",
    )


def _incomplete(folder: Path) -> Fault | None:
    try:
        named = sorted(files_in_index(folder))
    except ValueError as error:
        return Fault(reasons.WEIGHTS_MISSING, "model", f"{INDEX} cannot be read: {error}")
    missing = [name for name in named if not (folder / name).exists()]
    if not missing:
        return None
    message = (
        f"{len(missing)} of the {len(named)} files that {INDEX} names are missing, {missing[0][:200]} first"
    )
    return Fault(reasons.WEIGHTS_MISSING, "model", message)


def files_in_index(folder: Path) -> set[str]:
    """Names of the files that the index of a checkpoint names; none where there is no index. Raises
    ValueError."""
    index = folder / INDEX
    if not index.exists():
        return set()
    size = index.stat().st_size
    if size > _MAX_INDEX_BYTES:
        raise ValueError(f"it has {size / 1e6:.1f} MB; at most {_MAX_INDEX_BYTES / 1e6:.1f} MB are read")
    try:
        names = set(json.loads(index.read_bytes())["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(words(error)) from None
    if not all(isinstance(name, str) for name in names):
        raise ValueError("it names files that are no names")
    return names


def packed(config: Mapping[str, Any]) -> str:
    """config.json as the report carries it: what planning reads, compressed."""
    kept = {key: value for key, value in config.items() if key not in _LABELS}
    return base64.b64encode(zlib.compress(json.dumps(kept, separators=(",", ":")).encode(), 9)).decode()
