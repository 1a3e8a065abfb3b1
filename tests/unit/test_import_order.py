"""The import order of docs/architecture.md: a module imports only what stands to its right."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import irkit

ROOT = Path(irkit.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Ground that everything may import; it imports nothing of irkit but itself and `dialects`' constants.
COMMON = {"errors", "weights", "context", "model_info", "remarks", "rewriting"}
MIDDLE = {"schedule", "rkernels", "dialects"}
RANKS = ["cli", "driver", "runtime", "lower", "passes", "schedule", "rkernels", "dialects"]
ALLOWED = {
    **{
        part: {*RANKS[number:], *(MIDDLE if part in MIDDLE - {"dialects"} else ())}
        for number, part in enumerate(RANKS)
    },
    # Pictures are drawn from plain data, for whoever has it.
    "viewing": {"viewing", "schedule"},
    "frontends": {"frontends", "dialects"},
    "interp": {"interp", "dialects"},
    # Doors of the package, which open what they name on first use.
    "__init__": {"driver", "runtime"},
    "universe": set(RANKS),
    "extending": set(RANKS),
}
# The driver is where everything meets.
ALLOWED["cli"] |= {"frontends", "interp"}
ALLOWED["driver"] |= {"frontends", "interp", "viewing", "__init__"}
ALLOWED["runtime"] |= {"viewing"}
# Plain data of the scheduler, and none of its algorithms (docs/architecture.md).
EXCEPTIONS = {
    ("interp/schedule.py", "irkit.schedule.model"),
    ("interp/schedule.py", "irkit.schedule.modes"),
    ("interp/interleave.py", "irkit.schedule.model"),
    ("interp/interleave.py", "irkit.schedule.modes"),
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


# Rooms of the driver, from the last to the first; `execution` and `verification` stand side by side.
ROOMS = [
    "tools",
    "reducing",
    "compiler",
    "pipelines",
    "instruments",
    "execution",
    "verification",
    "files",
    "registry",
    "diagnostics",
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


def test_saved_programs_run_without_xdsl() -> None:
    """What an emitted module and `load` import at their top does not reach xDSL."""
    needed = [
        "runtime/program.py",
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
