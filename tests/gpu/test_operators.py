"""Single operators on tensors of a GPU against scikit-learn, and the values that are refused there.

Skipped where there is no CUDA device, or no PyTorch.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import irkit
from benchmarks.operators import COLUMNS, OPERATORS
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
LOOKED = ("LogisticRegression", "StandardScaler", "Binarizer", "MLPClassifier")
WARM = 4
"""Calls after which a call is launched as those before it."""


@cache
def fitted(name: str) -> tuple[Any, Any]:
    """A model and its program of float32."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, COLUMNS))
    with warnings.catch_warnings():
        # 200 steps are enough for what is asked here.
        warnings.simplefilter("ignore")
        model = OPERATORS[name]().fit(x, (x[:, :5].sum(axis=1) > 0).astype(np.int64))
    return model, irkit.compile(model, target="cuda", dtype="float32")


def rows(count: int) -> Any:
    """Rows of float32."""
    return np.random.default_rng(count).normal(size=(count, COLUMNS)).astype(np.float32)


def on_device(array: Any) -> Any:
    """The same as a tensor."""
    torch = pytest.importorskip("torch")
    return torch.from_numpy(array).cuda()


def assert_as(model: Any, program: Any, x: Any) -> None:
    """All methods of a model, of which each is an output; a label is the number of its class."""
    names = [port.name for port in program._first.outputs]
    found = dict(zip(names, program.run([on_device(x)]), strict=True))
    for method, output in program._first.info.methods.items():
        if method == "predict_log_proba":
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            want = np.asarray(getattr(model, method)(x))
        got = found[output].cpu().numpy()
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        else:
            # A margin of next to nothing has either sign.
            assert (got != want).mean() <= 1e-4


@pytest.mark.parametrize("name", [*OPERATORS])
def test_an_operator_answers_as_scikit_learn(name: str) -> None:
    """Batches around a tile; a size that comes again is launched in another way."""
    model, program = fitted(name)
    for count in (1, 3, 63, 129, 2_003):
        for _ in range(2):
            assert_as(model, program, rows(count))


@pytest.mark.parametrize("mode", ["per-op", "per-wave", "persistent"])
@pytest.mark.parametrize("name", ["LogisticRegression", "MLPClassifier", "SVC", "StandardScaler"])
def test_it_does_so_in_every_mode(name: str, mode: str) -> None:
    """Also where a batch has another plan."""
    model, program = fitted(name)
    executor = program._first.executor
    try:
        executor.mode = mode
        for count in (5, 3_000, 50_001):
            assert_as(model, program, rows(count))
    finally:
        executor.mode = "auto"


def refused(program: Any, x: Any) -> str | None:
    """With what words rows are; None if they are not."""
    try:
        program.run([x])
    except irkit.InvalidInputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("odd", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", LOOKED)
def test_one_value_anywhere_is_refused_as_on_the_host(name: str, odd: float) -> None:
    """In a call that is as the one before; the next one is right."""
    _, program = fitted(name)
    for count in (1, 7, 100_003):
        good = rows(count)
        tensor = on_device(good)
        for _ in range(WARM):
            want = program.run([tensor])
        for place in {0, count * COLUMNS // 3, count * COLUMNS - 1}:
            bad = good.copy()
            bad.reshape(-1)[place] = odd
            said = refused(program, bad)
            assert said == refused(program, on_device(bad))
            assert (said is None) == (np.isnan(odd) and name == "StandardScaler")
            for got, expected in zip(program.run([tensor]), want, strict=True):
                assert bool((got == expected).all())


@pytest.mark.parametrize("name", LOOKED)
def test_the_largest_numbers_are_as_on_the_host(name: str) -> None:
    """Taken where nothing overflows inside of the model, else refused with the same words."""
    model, program = fitted(name)
    x = rows(300)
    for _ in range(WARM):
        program.run([on_device(x)])
    x[7, 3], x[299, 19], x[0, 0] = 3.4e38, -3.4e38, np.finfo(np.float32).tiny / 8
    said = refused(program, x)
    assert said == refused(program, on_device(x))
    assert (said is None) == (name != "StandardScaler")
    if said is None:
        assert_as(model, program, x)


def test_other_layouts_are_refused_in_every_call() -> None:
    """A transposed tensor, one that begins between two multiples of 16 bytes, and one without rows."""
    _, program = fitted("LogisticRegression")
    tensor = on_device(rows(20))
    for _ in range(WARM):
        program.run([tensor])
    turned = tensor.t()
    with pytest.raises(irkit.InvalidInputError, match="C-contiguous"):
        program.run([turned])
    with pytest.raises(irkit.InvalidInputError, match="multiple of 16"):
        program.run([tensor.reshape(-1)[1:381].reshape(19, 20)])
    with pytest.raises(irkit.InvalidInputError, match="1 or more rows"):
        program.run([tensor[:0]])
    assert program.run([tensor[1:]])[0].shape[0] == 19


def test_streams_take_turns() -> None:
    """What another stream makes is looked at when it is there."""
    torch = pytest.importorskip("torch")
    _, program = fitted("LogisticRegression")
    tensor = on_device(rows(200_000))
    want = program.run([tensor])[1].clone()
    sides = [torch.cuda.Stream() for _ in range(2)]
    for turn in range(12):
        with torch.cuda.stream(sides[turn % 2]):
            made = tensor * 1.0
            if turn % 3 == 2:
                made[-1, -1] = float("nan")
                with pytest.raises(irkit.InvalidInputError, match="has NaN"):
                    program.run([made])
                continue
            got = program.run([made])[1]
        sides[turn % 2].synchronize()
        assert bool((got == want).all())
