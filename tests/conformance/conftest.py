"""Run a model two ways: through the graph interpreter, and compiled for the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import irkit
from irkit.frontends.module import ImportedModel
from irkit.interp.graph import run_graph
from irkit.runtime.program import CompiledProgram
from irkit.weights import Array


def execute_graph(imported: ImportedModel, inputs: Sequence[Array]) -> dict[str, Array]:
    """Output name → array. Converts what the model itself converts on entry (`ModelInfo.casts`)."""
    given = [
        x.astype(np.float32) if str(x.dtype) in imported.info.casts else x
        for x in map(np.ascontiguousarray, inputs)
    ]
    arrays = run_graph(imported.module, imported.weights, given)
    return dict(zip(imported.info.outputs, arrays, strict=True))


@pytest.fixture(scope="session")
def execute() -> Callable[[ImportedModel, Sequence[Array]], dict[str, Array]]:
    """`execute(imported, inputs)`: the graph interpreter's outputs by name."""
    return execute_graph


@pytest.fixture(scope="session")
def program_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for compiled programs that this session shares."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def compiled(
    program_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., CompiledProgram]:
    """`compiled(model, **options)`: `irkit.compile` for the CPU, never with the user's own cache."""
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(program_cache))

    def build(model: Any, **options: Any) -> CompiledProgram:
        return irkit.compile(model, target="cpu", **options)

    return build


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """scikit-learn's threads wait for each other longer than these small models take."""
    with threadpool_limits(1):
        yield
