"""The sign of a zero that is chosen between a limit and a number: NumPy's, of every float type, whatever the
number was before, in vectors and alone, on a CPU and in what a GPU is given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irkit

FLOATS = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)
CHOICES: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": lambda a, b: np.maximum(a, b),
    "minimum": lambda a, b: np.minimum(a, b),
    "maximum of a number": lambda a, b: np.maximum(a, 0),
    "minimum of a number": lambda a, b: np.minimum(a, -0.0),
    "a number's maximum": lambda a, b: np.maximum(0, a),
    "clip from 0": lambda a, b: np.clip(a, 0, 1),
    "clip from below": lambda a, b: np.clip(a, -1, 0),
    "clip to -0": lambda a, b: np.clip(a, -1, -0.0),
    "least": lambda a, b: a.reshape(-1, 1).min(1),
}
CONVERTED: dict[str, Callable[[Any], Any]] = {
    "clip": lambda a: np.clip(a, 0, 1),
    "clip to": lambda a: np.clip(a, -1, 0),
    "maximum": lambda a: np.maximum(0, a),
    "below": lambda a: np.where(a < 0, 0, a),
    "above": lambda a: np.where(a > 0, 0, a),
    "zeros": lambda a: np.where(a < 0, np.zeros(a.shape), a),
}
TYPES = [(np.float16, np.float32), (np.float16, np.float64), (np.float32, np.float64)]


def of_both_signs(dtype: Any, count: int) -> tuple[Any, Any]:
    """Pairs of zeros and NaN, again and again."""
    a = [-0.0, 0.0, -0.0, 0.0, np.nan, 1.0, np.nan, -0.5]
    b = [0.0, -0.0, -0.0, 0.0, 1.0, np.nan, np.nan, -0.0]
    return np.resize(np.array(a, dtype), count), np.resize(np.array(b, dtype), count)


def same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found)[known], np.signbit(expected)[known])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_a_choice_has_the_sign_of_numpy(dtype: Any, name: str) -> None:
    jitted = irkit.jit(target="cpu")(CHOICES[name])
    for count in (1, 5, 333):
        a, b = of_both_signs(dtype, count)
        same(jitted(a, b), CHOICES[name](a, b))


@pytest.mark.parametrize("name", CONVERTED)
@pytest.mark.parametrize(("narrow", "wide"), TYPES)
def test_a_number_that_was_converted_keeps_its_sign(narrow: Any, wide: Any, name: str) -> None:
    def function(a: Any) -> Any:
        return CONVERTED[name](a.astype(wide))

    def back(a: Any) -> Any:
        found: Any = np.where(a < 0, narrow(0), a.astype(narrow))
        return found

    jitted, jitted_back = irkit.jit(target="cpu")(function), irkit.jit(target="cpu")(back)
    for count in (1, 5, 333):
        a, b = of_both_signs(narrow, count)
        same(jitted(a), function(a))
        same(jitted_back(b.astype(wide)), back(b.astype(wide)))


@pytest.mark.parametrize(("narrow", "wide"), TYPES)
def test_a_gpu_compares_the_number_that_was_converted(narrow: Any, wide: Any) -> None:
    """`setp.le` of the number before would choose the limit in place of -0.0."""
    pytest.importorskip("numba_cuda")
    from test_cuda_architectures import translated

    from irkit.dialects import graph
    from irkit.dialects.types import element_type, tensor
    from irkit.driver.compiler.artifacts import build_artifact
    from irkit.frontends.module import GraphBuilder
    from irkit.model_info import ModelInfo
    from irkit.runtime.cuda.facts import read_facts

    b = GraphBuilder([("x", tensor(element_type(np.dtype(narrow)), (1000,)))])
    as_wide = b(graph.CastOp, b.inputs[0], to=element_type(np.dtype(wide)))
    limited = b(graph.ClipOp, as_wide, min=0.0, max=1.0)
    module = b.finish([("y", limited)], ModelInfo("network", b.names, ("y",)))
    source = build_artifact(module, "h200", cache=False).source
    _, facts = read_facts(source)
    compared = re.findall(
        r"setp\.(\w+)\.f(\d+)", translated(source, facts.entries, "sm_90a").ptx("sm_90a")
    )
    assert {size for _, size in compared} == {str(8 * np.dtype(wide).itemsize)}
    assert {how for how, _ in compared} == {"lt", "gt"}
