"""What of `nexmark_jobs` a timed run imports, as a hash: does it put out the same as before?

Comments, docstrings and blanks do not count, nor does what a timed run never imports: experiments,
samplers, the programs of hosts. So a baseline's digest stays comparable while those change.
"""

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: The programs of timed runs, and what they import by a name that is made up at run time.
_ENTRIES = ("run_query.py", "paced_query.py", "queries/*.py")
_DIGITS = 16
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def timed_program(package: Path) -> str:
    """Return the hash of what a timed run imports of a copy of `nexmark_jobs`."""
    files = imported(package)
    lines = (f"{path.relative_to(package)}\0{_text(tree)}\n" for path, tree in files.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:_DIGITS]


def imported(package: Path) -> dict[Path, ast.Module]:
    """Return the files of a copy of `nexmark_jobs` that a timed run imports, in order.

    Experiments are not among them: a timed run imports them only to know their names.
    """
    modules: dict[Path, ast.Module] = {}
    waiting = [path for entry in _ENTRIES for path in package.glob(entry)]
    while waiting:
        path = waiting.pop()
        if path not in modules and path.is_file():
            modules[path] = ast.parse(path.read_bytes())
            waiting += [
                file
                for name in _imports(modules[path])
                for file in _files(package, name.split("."))
            ]
    return dict(sorted(modules.items()))


def _imports(tree: ast.Module) -> Iterator[str]:
    """Return all that is imported, anywhere in a module: `a.b` for `from a import b`, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files(package: Path, words: list[str]) -> Iterator[Path]:
    """Return where the module of this name, and the packages that it is in, may be."""
    if words[0] == package.name:
        for end in range(1, len(words) + 1):
            place = package.joinpath(*words[1:end])
            yield from (place / "__init__.py", place.with_suffix(".py"))


def _text(node: Any) -> str:
    """Return a syntax tree without docstrings as text, which no version of Python changes."""
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    # Newer versions have more fields, which are empty here.
    known = (
        f"{name}={_text(value)}"
        for name, value in fields.items()
        if value is not None and value != []
    )
    return f"{type(node).__name__}({','.join(known)})"
