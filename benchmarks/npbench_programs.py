"""npbench's programs from its own source: inputs by its JSON files and `initialize`, calls as it makes them.

Nothing of npbench is in this repository. What is asked for is a checkout of https://github.com/spcl/npbench:
its folders `bench_info` and `npbench/benchmarks`.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

NAMES = (
    "jacobi_1d", "jacobi_2d", "heat_3d", "fdtd_2d", "hdiff", "vadv", "softmax", "mlp", "arc_distance",
    "azimint_naive", "azimint_hist", "cavity_flow", "channel_flow", "go_fast", "compute", "mandelbrot1",
    "mandelbrot2", "conv2d_bias", "gemm", "k2mm", "k3mm", "atax", "bicg", "mvt", "gemver", "gesummv",
    "correlation", "covariance",
)  # fmt: skip
MISSING = (
    "npbench is not here: clone https://github.com/spcl/npbench and give its folder as --npbench PATH "
    "(it must have bench_info/ and npbench/benchmarks/)"
)


class NpbenchError(Exception):
    """npbench, or a part of it, is not where it should be. The message says what to do."""


@dataclass(frozen=True)
class Program:
    """One program of a checkout, with what its JSON file says of it."""

    root: Path
    name: str
    facts: dict[str, Any]

    @property
    def folder(self) -> Path:
        """Where its sources are."""
        return self.root / "npbench" / "benchmarks" / self.facts["relative_path"]

    def presets(self) -> list[str]:
        """Names of its sizes."""
        return list(self.facts["parameters"])

    def function(self, kind: str) -> Callable[..., Any]:
        """Its function as `kind` has it: "numpy", "numba_np" (parallel), ... Raises NpbenchError where
        there is no such version, or no function."""
        path = self.folder / f"{self.facts['module_name']}_{kind}.py"
        if not path.exists():
            raise NpbenchError(f"npbench has no {path.name}")
        module = _loaded(path, self.root)
        name = self.facts["func_name"]
        if not hasattr(module, name):
            raise NpbenchError(f"npbench's {path.name} has no function {name}")
        return getattr(module, name)

    def inputs(self, preset: str, datatype: str | None = None) -> dict[str, Any]:
        """Every parameter and array by name; of floats of `datatype`, where `initialize` takes one (None: of
        its own default, or float64). Raises NpbenchError for a preset that it has not."""
        if preset not in self.facts["parameters"]:
            raise NpbenchError(f"{self.name} has no preset {preset}: {', '.join(self.presets())}")
        values = dict(self.facts["parameters"][preset])
        made = self.facts.get("init")
        if made:
            path = self.folder / f"{self.facts['module_name']}.py"
            if not path.exists():
                raise NpbenchError(f"npbench has no {path.name}")
            initialize = getattr(_loaded(path, self.root), made["func_name"])
            given = [values[a] for a in made["input_args"]]
            found = initialize(*given, **_datatype(initialize, datatype))
            results = found if isinstance(found, tuple) else (found,)
            _same_count(path, made["output_args"], results)
            values.update(zip(made["output_args"], results, strict=True))
        return values

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        """Those of a call, arrays copied: programs write to them."""
        given = (values[a] for a in self.facts["input_args"])
        return [v.copy() if isinstance(v, np.ndarray) else v for v in given]

    def results(self, returned: Any, arguments: list[Any]) -> list[Any]:
        """What a call has returned, and the arrays that it wrote to, each once: of versions of one program
        some return what they wrote, some all that they were given."""
        made = returned if isinstance(returned, tuple | list) else [returned]
        known = self.facts["input_args"]
        written = [
            arguments[known.index(a)] for a in self.facts.get("output_args", []) if a in known
        ]
        given = arguments if written else []
        new = [r for r in made if r is not None and not any(_is_of(r, a) for a in given)]
        return [*new, *written]


def _same_count(path: Path, names: list[str], results: tuple[Any, ...]) -> None:
    """Raises NpbenchError where `initialize` and the JSON file are of different versions of npbench."""
    if len(names) != len(results):
        raise NpbenchError(
            f"{path.name} initialises {len(results)} values, and bench_info names {len(names)} "
            f"({', '.join(names)}): these files are of different versions of npbench"
        )


def _is_of(result: Any, argument: Any) -> bool:
    """Is this result an argument, or part of its memory?"""
    arrays = isinstance(result, np.ndarray), isinstance(argument, np.ndarray)
    if all(arrays):
        return np.may_share_memory(result, argument)
    return not any(arrays) and bool(result == argument)


def _datatype(initialize: Callable[..., Any], asked: str | None) -> dict[str, Any]:
    """The argument `datatype` of an `initialize`, where it has one that is to be given."""
    known = inspect.signature(initialize).parameters.get("datatype")
    if known is None or (asked is None and known.default is not inspect.Parameter.empty):
        return {}
    return {"datatype": np.dtype(asked or "float64").type}


def find(path: Path | None) -> Path:
    """The checkout at `path`, or the one that an installed `npbench` is of. Raises NpbenchError."""
    if path is None:
        spec = importlib.util.find_spec("npbench")
        origin = spec.origin if spec is not None else None
        path = Path(origin).parents[1] if origin else None
    if path is None or not (path / "bench_info").is_dir():
        raise NpbenchError(MISSING)
    return path


def program(root: Path, name: str) -> Program:
    """A program by its name. Raises NpbenchError where the checkout has none."""
    path = root / "bench_info" / f"{name}.json"
    if not path.exists():
        raise NpbenchError(f"npbench has no {path.name} in bench_info/")
    return Program(root, name, json.loads(path.read_text())["benchmark"])


def _loaded(path: Path, root: Path) -> ModuleType:
    """A fresh module of a file, which may import what else is in the checkout."""
    spec = importlib.util.spec_from_file_location(f"npbench_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise NpbenchError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(root))
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise NpbenchError(f"{path.name} cannot be imported: {error}") from None
    finally:
        sys.path.remove(str(root))
    return module
