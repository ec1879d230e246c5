"""The house's rules of direction, read off the imports: who may know whom, and who may know which library."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

import bertkit

PACKAGE = Path(bertkit.__file__).parent
# Strongest first: a room sees those on the lines below its own, and what its own line says further.
BELOW: dict[str, set[str]] = {
    "cli": {"bench", "jobs", "settings", "training", "tasks", "model", "batches", "metrics", "corpus", "labelled"},
    "bench": {"jobs", "settings", "training", "tasks", "model", "batches", "metrics", "corpus", "labelled"},
    "jobs": {"settings", "training", "tasks", "model", "batches", "metrics", "corpus", "labelled"},
    "settings": {"training", "tasks", "model", "batches", "metrics", "corpus", "labelled"},
    "training": {"tasks", "model", "batches", "metrics", "corpus", "labelled"},
    "tasks": {"model", "batches", "metrics", "corpus", "labelled"},
    "model": {"corpus", "labelled"},
    "batches": {"corpus", "labelled"},
    "metrics": {"corpus", "labelled"},
    "corpus": set(),
    "labelled": set(),
}
GROUND = {"randomness", "errors", "fields", "notices", "foreign_bytes", "__init__"}
BLIND_TO_PACKED = {"corpus", "labelled", "randomness", "errors", "fields", "notices", "foreign_bytes"}
# Who alone may import a library, as path prefixes inside the package.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "accelerate": ("training/", "jobs/"),
    "rich": ("cli/", "jobs/"),
    "typer": ("cli/",),
    "transformers": ("bench/", "model/hf"),
    "datasets": ("labelled/", "corpus/hub", "metrics/shells/", "metrics/added"),  # evaluate's Features are datasets'
    "evaluate": ("metrics/shells/", "metrics/added"),
    "onnxruntime": ("bench/",),
}
NO_TORCH = ("corpus/", "labelled/", "cli/", "errors", "fields", "notices", "foreign_bytes", "randomness")
# Function-level imports: in the command line, in the package's own __init__, and of these slow or optional modules anywhere.
FREE_INSIDE = ("cli/", "__init__", "__main__")
SLOW = {
    "datasets", "evaluate", "transformers", "accelerate", "torch", "scipy", "sklearn", "pyarrow", "rich", "tensorboard", "wandb",
    "huggingface_hub", "tokenizers", "safetensors", "numpy", "psutil", "pydoc_data", "unicodedata", "difflib", "bertkit",
    "onnxruntime", "onnxscript",
}  # fmt: skip


@dataclass(frozen=True)
class Import:
    file: str
    line: int
    module: str
    inside: bool  # in a function
    typing: bool  # under TYPE_CHECKING

    def __str__(self) -> str:
        return f"bertkit/{self.file}:{self.line} imports {self.module}"


def _typing_only(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _walk(node: ast.AST, file: str, inside: bool, typing: bool) -> list[Import]:
    found: list[Import] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            found += [Import(file, child.lineno, alias.name, inside, typing) for alias in child.names]
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"bertkit/{file}:{child.lineno} imports relatively"
            found += [Import(file, child.lineno, child.module or "", inside, typing)]
            # "from bertkit.corpus import store" names the module store
            found += [
                Import(file, child.lineno, f"{child.module}.{alias.name}", inside, typing)
                for alias in child.names
                if _is_module(f"{child.module}.{alias.name}")
            ]
        else:
            deeper = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            found += _walk(child, file, deeper, typing or (isinstance(child, ast.If) and _typing_only(child)))
    return found


def _is_module(name: str) -> bool:
    if not name.startswith("bertkit."):
        return False
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def imports_of(source: str, file: str) -> list[Import]:
    return _walk(ast.parse(source), file, False, False)


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    found: list[Import] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        found += imports_of(path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).as_posix())
    assert len(found) > 100
    return found


def room(file_or_module: str) -> str:
    """``corpus`` for corpus/store.py as for bertkit.corpus.store."""
    text = file_or_module.removesuffix(".py").replace("/", ".").removeprefix("bertkit.")
    return text.split(".")[0] if text not in ("bertkit", "") else "__init__"


def wrong_directions(imports: list[Import]) -> list[str]:
    wrong = []
    for each in imports:
        if each.module.split(".")[0] != "bertkit":
            continue
        here, there = room(each.file), room(each.module)
        if here in ("__main__", "__init__") or here == there or there in GROUND:
            continue
        if there == "packed":
            if here in BLIND_TO_PACKED:
                wrong.append(str(each))
        elif here in GROUND or here == "packed" or there not in BELOW[here]:
            wrong.append(str(each))
    return wrong


def wrong_libraries(imports: list[Import]) -> list[str]:
    wrong = []
    for each in imports:
        library = each.module.split(".")[0]
        if library in LIBRARIES and not each.typing and not each.file.startswith(LIBRARIES[library]):
            wrong.append(str(each))
        if library == "torch" and each.file.startswith(NO_TORCH):
            wrong.append(str(each))
        at_top = not each.inside and not each.typing and not each.file.startswith(("bench/", "metrics/shells/"))
        if library in ("datasets", "evaluate", "transformers") and at_top:
            wrong.append(f"{each} at the top")
    return wrong


def test_rooms_see_only_what_lies_below(imports: list[Import]) -> None:
    assert wrong_directions(imports) == []


def test_libraries_stay_in_their_rooms(imports: list[Import]) -> None:
    assert wrong_libraries(imports) == []


def test_function_level_imports_stand_only_where_they_save_time(imports: list[Import]) -> None:
    wrong = [
        str(each)
        for each in imports
        if each.inside and not each.file.startswith(FREE_INSIDE) and each.module.split(".")[0] not in SLOW
    ]
    assert wrong == []


def test_no_module_imports_itself_in_a_circle(imports: list[Import]) -> None:
    graph: dict[str, set[str]] = {}
    for each in imports:
        if each.module.startswith("bertkit") and not each.inside and not each.typing:
            here = "bertkit." + each.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
            if each.module != here:
                graph.setdefault(here, set()).add(each.module)
    assert circles(graph) == []


def circles(graph: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()
    found: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            found.append(" -> ".join((*path[path.index(name) :], name)))
        elif name not in done:
            for following in sorted(graph.get(name, ())):
                visit(following, (*path, name))
            done.add(name)

    for start in sorted(graph):
        visit(start, ())
    return found


def test_the_rules_themselves_catch_what_they_forbid() -> None:
    source = "from bertkit.training import loop\nimport rich\n\ndef f():\n    import torch\n    import json\n"
    bad = imports_of(source, "corpus/store.py")
    assert len(wrong_directions(bad)) >= 1
    assert len(wrong_libraries(bad)) == 2  # rich, torch
    assert wrong_directions(imports_of("from bertkit.model.encoder import Encoder", "batches/plan.py"))
    assert wrong_directions(imports_of("from bertkit.packed import PackedSequences", "corpus/store.py"))
    assert not wrong_directions(imports_of("from bertkit.packed import PackedSequences", "batches/collator.py"))
    assert wrong_libraries(imports_of("import transformers", "model/hf.py"))
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a -> b -> c -> a"]
    assert [each.inside for each in bad] == [False, False, False, True, True][-len(bad) :]


def test_nobody_imports_the_shells_but_evaluate_itself(imports: list[Import]) -> None:
    assert [
        str(each) for each in imports if "metrics.shells" in each.module and not each.file.startswith("metrics/shells/")
    ] == []


def test_every_room_is_known() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(BELOW)
