"""The disk cache's key: whatever a program hangs on changes it, and nothing else does."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irkit
from irkit import extending
from irkit.driver.compiler import cache
from irkit.driver.compiler.cache import PACKAGES, cache_key
from irkit.driver.compiler.fingerprint import fingerprint
from irkit.driver.registry import ADDED
from irkit.frontends.module import ImportedModel
from irkit.model_info import ModelInfo
from irkit.rkernels import registry
from irkit.rkernels.registry import RKernel
from irkit.schedule.devices import device
from irkit.weights import WeightStore

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = arith.constant dense_resource<w> : tensor<4xf32>
  %y = graph.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
FACTOR = 2


def model(weight: float = 1.0, classes: tuple[str, ...] = ()) -> ImportedModel:
    weights = WeightStore()
    weights.put("w", np.full(4, weight, np.float32))
    info = ModelInfo("network", ("x",), ("y",), source="mlir", classes=classes)
    return ImportedModel(irkit.parse(TEXT), weights, info)


def key(**options: Any) -> str:
    return cache_key(model(**options), device("test4"))


@pytest.fixture
def additions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test adds goes again."""
    monkeypatch.setattr(registry, "_REGISTERED", {k: list(v) for k, v in _registered().items()})
    before = dict(ADDED)
    yield
    ADDED.clear()
    ADDED.update(before)


def _registered() -> dict[Any, Any]:
    return registry._REGISTERED


# A template, and what an rKernel may be made of.


def template(task, tasks, rows, scratch, OPERANDS):
    return 0


def other_template(task, tasks, rows, scratch, OPERANDS):
    return 1


MINE = RKernel("softmax", "mine", "cpu", __name__, "template")


def changed(rkernel: RKernel, field: str) -> RKernel:
    """`rkernel` with another value of `field`, of whatever kind it is."""
    value = getattr(rkernel, field)
    if field == "function":
        return dataclasses.replace(rkernel, function="other_template")
    if field == "module":
        raise ValueError(field)  # what it names counts, as the template
    other: Any = {
        str: lambda: "cuda" if value == "cpu" else value + "x",
        int: lambda: value + 1,
        float: lambda: value + 1.0,
        dict: lambda: {**value, "NEW": 1},
    }.get(type(value), lambda: lambda *_: 77)()
    return dataclasses.replace(rkernel, **{field: other})


@pytest.mark.parametrize(
    "field", [f.name for f in dataclasses.fields(RKernel) if f.name != "module"]
)
def test_every_field_of_an_rkernel_counts(field: str, additions: None):
    extending.add_rkernel(MINE)
    before = key()
    assert key() == before
    ADDED.clear()
    extending.add_rkernel(changed(MINE, field))
    assert key() != before


def test_the_template_of_an_rkernel_counts(additions: None, monkeypatch: pytest.MonkeyPatch):
    extending.add_rkernel(MINE)
    before = key()
    monkeypatch.setitem(globals(), "template", other_template)
    extending.add_rkernel(MINE)
    assert key() != before


def test_what_callables_of_an_rkernel_bind_counts(additions: None):
    """Two rKernels from one line of source."""

    def grids(limit: int) -> Callable[..., list[int]]:
        return lambda root, tasks: [min(tasks, limit)]

    keys = set[str]()
    for limit in (3, 4):
        extending.add_rkernel(dataclasses.replace(MINE, grid=grids(limit)))
        keys.add(key())
    assert len(keys) == 2


@pytest.mark.parametrize("package", ["python", *PACKAGES])
def test_versions_count(package: str, monkeypatch: pytest.MonkeyPatch):
    before = key()
    known = cache.versions()
    # The library of products is an extra.
    assert known[package] or package == "nvmath-python"
    monkeypatch.setattr(cache, "versions", lambda: {**known, package: "0.0.1"})
    assert key() != before


def test_model_device_and_sources_count(monkeypatch: pytest.MonkeyPatch):
    before = key()
    assert key() == before
    assert key(weight=2.0) != before
    assert key(classes=("a", "b")) != before
    assert cache_key(model(), device("cpu2")) != before
    monkeypatch.setattr(cache, "own_digest", lambda: b"another irkit")
    assert key() != before


def test_weights_beside_a_file_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Their names come from a user, and say nothing of their content."""
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    for value in (1, 2):
        weights = WeightStore()
        weights.put("w", np.full(4, value, np.float32))
        weights.save(path.with_suffix(".safetensors"))
        found = irkit.compile(path, target="cpu")(np.zeros(4, np.float32))
        np.testing.assert_array_equal(found, np.full(4, value, np.float32))


def _method_of(value: int) -> Callable[[], int]:
    class Holder:
        def __init__(self) -> None:
            self.value = value

        def get(self) -> int:
            return self.value

    return Holder().get


def _class_of(value: int) -> type:
    class Made:
        factor = value

        @property
        def both(self) -> int:
            return self.factor + value

    return Made


def _default(value: int) -> Callable[..., int]:
    return lambda x, y=value: x + y


def _keyword(value: int) -> Callable[..., int]:
    return lambda x, *, y=value: x + y


def _nested(value: int) -> Callable[..., Callable[..., int]]:
    return lambda x: lambda y: x + y + value


def _array(value: int) -> Callable[..., Any]:
    table = np.full(2000, 1, np.int64)
    table[1000] = value
    return lambda x: table[x]


@pytest.mark.parametrize(
    "make",
    [
        _method_of,
        _class_of,
        _default,
        _keyword,
        _nested,
        _array,
        lambda value: partial(max, value),
        lambda value: {"a": [value]},
        lambda value: ((1, value), 2) if value == 1 else ((1,), value, 2),
        lambda value: frozenset({"a", "b", value}),
        lambda value: np.float32(value),
        lambda value: type("Made", (), {"x": value}),
        lambda value: (lambda x: x + 1) if value == 1 else (lambda x: x + 2),
    ],
)
def test_what_code_and_values_are_made_of_counts(make: Callable[[int], object]):
    assert fingerprint(make(1)) == fingerprint(make(1))
    assert fingerprint(make(1)) != fingerprint(make(2))


def test_globals_that_a_function_names_count(monkeypatch: pytest.MonkeyPatch):
    def scaled(x: int) -> int:
        return x * FACTOR

    before = fingerprint(scaled)
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert fingerprint(scaled) != before


def test_nesting_counts():
    assert fingerprint(((1,), 2)) != fingerprint(((1, 2),))
    assert fingerprint([[], []]) != fingerprint([[[]]])


def test_what_cannot_be_described_is_never_the_same():
    with Path(os.devnull).open() as file:
        assert fingerprint(file) != fingerprint(file)


def test_additions_are_described_alike_in_every_process():
    code = (
        "import new_op, new_pass, own_rkernel\n"
        "from irkit.driver.compiler.fingerprint import fingerprint\n"
        "print(fingerprint((new_op.SoftsignOp, new_op.lowering, vars(new_pass), own_rkernel.ONLINE,\n"
        "    frozenset('irkit and its peers'))))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                **os.environ,
                "PYTHONPATH": f"{EXAMPLES}{os.pathsep}{EXAMPLES.parent}",
                "PYTHONHASHSEED": str(seed),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(found) == 1
