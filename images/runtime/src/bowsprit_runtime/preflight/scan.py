"""Reads the plugins' source for imports of vLLM modules and names that this engine does not have.

Late imports, inside functions, fail only when a request comes; here they are seen before. For what has moved,
the engine's own source says where it is now. Nothing is imported. What cannot be seen: renamed attributes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_FILES = 2000
"""Of one plugin; beyond that a package carries more than a plugin."""

_GUARDS = ("ImportError", "ModuleNotFoundError", "Exception", "AttributeError")


@dataclass(frozen=True)
class Import:
    """`from module import name`, or `import module` when name is empty."""

    file: Path
    line: int
    module: str
    name: str = ""


@dataclass(frozen=True)
class Dead:
    """An import that cannot work in this engine."""

    at: Import
    now_in: tuple[str, ...]
    """Modules of the engine that define the name."""

    def told(self, folder: Path) -> str:
        what = f"{self.at.name} from {self.at.module}" if self.at.name else self.at.module
        home = f"; it is in {' or '.join(self.now_in)} now" if self.now_in else ""
        place = f"{self.at.file.relative_to(folder)}:{self.at.line}"
        return f"{place} imports {what}, which this vLLM does not have{home}"


def dead_imports(folder: Path, vllm: Path, supplied: Container[str] = ()) -> list[Dead]:
    """Of all Python files under `folder`.

    `vllm` is the engine's package folder, `supplied` are modules that are there all the same.
    """
    engine = _Engine(vllm, supplied)
    imports = [one for file in sorted(folder.rglob("*.py"))[:MAX_FILES] for one in vllm_imports(file)]
    return [Dead(one, engine.homes(one)) for one in imports if not engine.has(one)]


def vllm_imports(file: Path) -> Iterator[Import]:
    """All imports of vLLM's modules that nothing guards."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in _unguarded(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "vllm":
                    yield Import(file, node.lineno, alias.name)
        elif (
            isinstance(node, ast.ImportFrom)
            and not node.level
            and (node.module or "").split(".")[0] == "vllm"
        ):
            for alias in node.names:
                yield Import(file, node.lineno, node.module or "", "" if alias.name == "*" else alias.name)


def _unguarded(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that a type checker alone sees, and those whose ImportError is caught."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for other in node.orelse:
                yield from _with_children(other)
        elif isinstance(node, ast.Try) and any(_catches_import(handler) for handler in node.handlers):
            for other in (*node.orelse, *node.finalbody):
                yield from _with_children(other)
        else:
            yield from _with_children(node)


def _with_children(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    yield from _unguarded(node)


def _catches_import(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or any(name in ast.dump(handler.type) for name in _GUARDS)


class _Engine:
    """vLLM's source files, read as far as they are asked for."""

    def __init__(self, root: Path, supplied: Container[str]) -> None:
        self._root, self._supplied = root, supplied
        self._names: dict[Path, set[str] | None] = {}
        self._texts: dict[Path, str] = {}

    def has(self, wanted: Import) -> bool:
        file = self._file(wanted.module)
        if file is None:
            return wanted.module in self._supplied
        if not wanted.name or self._file(f"{wanted.module}.{wanted.name}"):
            return True
        names = self._defined(file)
        return names is None or wanted.name in names

    def _file(self, module: str) -> Path | None:
        """The file of a module; a folder without __init__.py counts as itself."""
        path = self._root.joinpath(*module.split(".")[1:])
        if (path / "__init__.py").exists():
            return path / "__init__.py"
        if path.with_suffix(".py").exists():
            return path.with_suffix(".py")
        extension = next(path.parent.glob(f"{path.name}.*.so"), None) if path.parent.is_dir() else None
        return extension or (path if path.is_dir() else None)

    def _defined(self, file: Path) -> set[str] | None:
        """Names at a module's top level; None when only running it would tell."""
        if file not in self._names:
            self._names[file] = _top_level(file) if file.suffix == ".py" else None
        return self._names[file]

    def homes(self, wanted: Import) -> tuple[str, ...]:
        """At most two modules that define the name now."""
        name = wanted.name or wanted.module.rsplit(".", 1)[-1]
        if not wanted.name:
            return self._modules_called(name)
        definition = re.compile(
            rf"^(?:class|def) {re.escape(name)}\b|^{re.escape(name)}\s*[:=]", re.MULTILINE
        )
        homes = [file for file in self._root.rglob("*.py") if definition.search(self._text(file))]
        return tuple(sorted(map(self._module, homes), key=_likelihood)[:2])

    def _modules_called(self, name: str) -> tuple[str, ...]:
        named = [*self._root.rglob(f"{name}.py"), *self._root.rglob(f"{name}/__init__.py")]
        return tuple(sorted(map(self._module, named), key=_likelihood)[:2])

    def _text(self, file: Path) -> str:
        if file not in self._texts:
            self._texts[file] = file.read_text(encoding="utf-8", errors="replace")
        return self._texts[file]

    def _module(self, file: Path) -> str:
        parts = file.relative_to(self._root.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _likelihood(module: str) -> tuple[bool, int, str]:
    """Models keep classes of their own under common names; what is for all lies higher up."""
    return ".models." in module, module.count("."), module


def _top_level(file: Path) -> set[str] | None:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return None if "*" in names or "__getattr__" in names else names
