"""The import order of docs/architecture.md: a module imports only what stands to its right."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import irkit

ROOT = Path(irkit.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Ground that everything may import; it imports nothing of irkit but itself and `dialects`' constants.
COMMON = {
    "architectures",
    "batch_place",
    "bfloat16",
    "errors",
    "expressions",
    "weights",
    "context",
    "model_info",
    "narrow_integers",
    "plain_json",
    "syntax_trees",
    "processors",
    "ranks",
    "remarks",
    "rewriting",
    "row_forms",
    "row_ranges",
    "scaled_rows",
}
MIDDLE = {"schedule", "rkernels", "dialects"}
RANKS = ["cli", "driver", "runtime", "lower", "passes", "schedule", "rkernels", "dialects"]
ALLOWED = {
    **{
        part: {*RANKS[number:], *(MIDDLE if part in MIDDLE - {"dialects"} else ())}
        for number, part in enumerate(RANKS)
    },
    # DAGs of kernels: above what runs programs; the driver runs larger programs as such.
    "dags": {"dags", "runtime", "passes", "schedule", "dialects", "viewing"},
    # Pictures are drawn from plain data, for whoever has it.
    "viewing": {"viewing", "schedule"},
    # What is known of functions of the host: plain data, and the calls.
    "annotations": {"annotations"},
    "frontends": {"frontends", "dialects", "annotations"},
    "interp": {"interp", "dialects"},
    # Training: above functions of arrays, of which its steps are made.
    "training": {
        "training",
        "driver",
        "runtime",
        "passes",
        "schedule",
        "frontends",
        "interp",
        "dialects",
    },
    # Programs within scikit-learn, and in the processes of others.
    "serving": {"serving", "driver", "runtime"},
    # Doors of the package, which open what they name on first use.
    "__init__": {"driver", "runtime", "dags", "annotations", "te", "training", "serving"},
    "te": {"driver"},
    "sklearn": {"serving"},
    "universe": set(RANKS),
    "extending": set(RANKS),
}
# The driver is where everything meets.
ALLOWED["cli"] |= {"frontends", "interp"}
ALLOWED["driver"] |= {"frontends", "interp", "viewing", "annotations", "dags", "__init__"}
ALLOWED["runtime"] |= {"viewing"}
# Plain data of the scheduler, and none of its algorithms (docs/architecture.md).
EXCEPTIONS = {
    ("interp/schedule.py", "irkit.schedule.model"),
    ("interp/schedule.py", "irkit.schedule.modes"),
    ("interp/interleave.py", "irkit.schedule.model"),
    ("interp/interleave.py", "irkit.schedule.modes"),
    # The mock of a GPU interprets the IR of programs, as irkit-run does.
    ("dags/mock_programs.py", "irkit.driver.registry"),
    ("dags/mock_programs.py", "irkit.interp"),
    # An ONNX backend runs models, so it stands behind the public door.
    ("frontends/onnx/backend.py", "irkit"),
}


def modules_of(tree: ast.AST, package: str) -> Iterator[str]:
    """Full names of all modules that a file imports, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {package}"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            # `from irkit.passes import x` may name a module or something in one.
            yield from (names if node.module == "irkit" else [str(node.module)])


def part_of(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def wrong_imports(path: str, text: str) -> list[str]:
    """What a file imports that stands to its left. `path` is relative to the package."""
    own = Path(path).parts[0].removesuffix(".py")
    allowed = COMMON if own in COMMON else ALLOWED[own] | COMMON
    return [
        name
        for name in modules_of(ast.parse(text), path)
        if name.split(".")[0] == "irkit"
        and part_of(name) not in allowed
        and (path, name) not in EXCEPTIONS
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_go_to_the_right(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    assert wrong_imports(name, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("path", "text", "wrong"),
    [
        ("passes/x.py", "from irkit.runtime import cpu", ["irkit.runtime"]),
        ("passes/x.py", "def f():\n  import irkit.lower.y", ["irkit.lower.y"]),
        ("dialects/x.py", "from irkit import schedule", ["irkit.schedule"]),
        ("interp/task.py", "from irkit.schedule.model import Schedule", ["irkit.schedule.model"]),
        ("frontends/x.py", "from irkit.passes import y", ["irkit.passes"]),
        ("driver/x.py", "from irkit.cli import opt", ["irkit.cli"]),
        ("errors.py", "from irkit.dialects import types", ["irkit.dialects"]),
        ("lower/x.py", "from irkit.passes.y import z; import numpy", []),
        ("interp/schedule.py", "from irkit.schedule.model import Schedule", []),
    ],
)
def test_the_check_finds_wrong_imports(path: str, text: str, wrong: list[str]) -> None:
    assert wrong_imports(path, text) == wrong


@pytest.mark.parametrize("path", sorted((ROOT / "dialects").glob("*.py")), ids=lambda p: p.name)
def test_other_dialects_know_nothing_of_graph(path: Path) -> None:
    """What `te` and `graph` share lies below both."""
    imported = modules_of(ast.parse(path.read_text(encoding="utf-8")), path.name)
    assert [name for name in imported if name.startswith("irkit.dialects.graph")] == []


# Rooms of the driver, from the last to the first; `execution` and `verification` stand side by side.
ROOMS = [
    "tools",
    "reducing",
    "measuring",
    "programs",
    "compiler",
    "pipelines",
    "instruments",
    "execution",
    "verification",
    "files",
    "registry",
    "device_at_hand",
    "gpu_at_hand",
    "diagnostics",
    "flags",
]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "driver").rglob("*.py")), ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_rooms_of_the_driver(path: Path) -> None:
    room = path.relative_to(ROOT / "driver").parts[0].removesuffix(".py")
    below = ROOMS[ROOMS.index(room) :] if room != "__init__" else []
    imported = modules_of(ast.parse(path.read_text(encoding="utf-8")), path.name)
    rooms = [name.split(".")[2] for name in imported if name.startswith("irkit.driver.")]
    assert [name for name in rooms if name not in below] == []


# Cycles: of what is imported when a module is, so not in functions, nor for the type checker alone.


def imported_at_once(body: list[ast.stmt], known: Collection[str]) -> Iterator[str]:
    """Names of the `known` modules that statements import as they run."""
    for node in body:
        match node:
            case ast.Import():
                yield from {alias.name for alias in node.names} & set(known)
            case ast.ImportFrom():
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                # `from package import module` is about the module.
                yield from full & set(known) or {str(node.module)} & set(known)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass
            case ast.If() | ast.Try() | ast.With():
                yield from imported_at_once(node.body, known)
            case _:
                pass


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def unit_of(name: str, packages: set[str]) -> str:
    """The package that a module is in; itself, where packages stand beside it."""
    parent = name if name in packages else name.rpartition(".")[0]
    has_packages = any(p.rpartition(".")[0] == parent for p in packages)
    return name if has_packages else parent


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Nodes that a cycle goes through, or that lie between two; none if there is no cycle."""
    left = dict(graph)
    while left:
        targets = {t for node in left for t in left[node]}
        ends = [node for node in left if not left[node] & left.keys() or node not in targets]
        if not ends:
            return sorted(left)
        for node in ends:
            del left[node]
    return []


def graphs(trees: dict[str, ast.Module], packages: set[str]) -> tuple[dict[str, set[str]], ...]:
    """Who imports whom at once: of modules, and of packages."""
    modules = {
        name: {i for i in imported_at_once(tree.body, trees) if i != name}
        for name, tree in trees.items()
    }
    units: dict[str, set[str]] = {}
    for name, imported in modules.items():
        unit = unit_of(name, packages)
        others = {unit_of(other, packages) for other in imported}
        units.setdefault(unit, set()).update(others - {unit})
    return modules, units


def test_no_cycle_stands() -> None:
    trees = {module_name(p): ast.parse(p.read_text(encoding="utf-8")) for p in FILES}
    packages = {module_name(p) for p in FILES if p.name == "__init__.py"}
    modules, units = graphs(trees, packages)
    assert cycle(modules) == []
    assert cycle(units) == []


def test_the_check_finds_cycles() -> None:
    texts = {
        "irkit": "",
        "irkit.a": "",
        "irkit.a.x": "from irkit.b import y",
        "irkit.b": "",
        "irkit.b.y": "def f():\n  import irkit.a.x",
        "irkit.b.z": "if 1:\n  from irkit.a.x import f",
    }
    trees = {name: ast.parse(text) for name, text in texts.items()}
    modules, units = graphs(trees, {"irkit", "irkit.a", "irkit.b"})
    assert cycle(modules) == []
    assert cycle(units) == ["irkit.a", "irkit.b"]
    trees["irkit.b.y"] = ast.parse("import irkit.a.x")
    assert cycle(graphs(trees, set())[0]) == ["irkit.a.x", "irkit.b.y"]


def test_the_page_names_all_common_ground() -> None:
    page = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [name for name in COMMON if not re.search(rf"`irkit/{name}(\.py|/)`", page)] == []


def test_saved_programs_run_without_xdsl() -> None:
    """What an emitted module and `load` import at their top does not reach xDSL."""
    needed = [
        "runtime/program.py",
        "driver/compiler/recompile.py",
        "runtime/variant.py",
        "runtime/executor.py",
        "runtime/loading.py",
        "runtime/artifact.py",
        "runtime/cpu.py",
        "runtime/intrinsics/cpu.py",
        "schedule/tables.py",
        "model_info.py",
    ]
    for path in needed:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert not [n for n in modules_of(tree, path) if n.startswith(("xdsl", "irkit.dialects"))]
