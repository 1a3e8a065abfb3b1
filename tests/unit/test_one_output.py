"""A call that wants one output runs what that hangs on, and has what a call that wants all has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import linear_model, neural_network

import irkit
from irkit.runtime.cpu import CpuExecutor
from irkit.runtime.variant import Variant

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 8))
Y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.7])
MODELS: dict[str, Any] = {
    "softmax": linear_model.LogisticRegression(),
    "layers": neural_network.MLPClassifier((6, 5), max_iter=20, random_state=0),
    "sgd": linear_model.SGDClassifier(loss="log_loss", random_state=0),
}


def compiled(name: str, mode: str = "auto") -> tuple[Any, Variant]:
    program = irkit.compile(MODELS[name].fit(X, Y), "cpu", dtype="float64", mode=mode)
    variant = program.variant([X])
    assert isinstance(variant, Variant)
    return program, variant


@pytest.mark.parametrize("mode", ["auto", "serial", "per-wave", "persistent", "per-op"])
@pytest.mark.parametrize("name", MODELS)
def test_each_output_alone_is_what_it_is_among_all(name: str, mode: str) -> None:
    program, variant = compiled(name, mode)
    assert variant.executor.program.needed
    for rows in (1, 2, 300):
        x = RNG.normal(size=(rows, 8))
        want = variant.run([x])
        for number, port in enumerate(variant.outputs):
            found = variant.run_for([x], port.name)[number]
            assert np.array_equal(found, want[number]), (port.name, rows)
        assert np.array_equal(program.predict(x), program.predict(x))


def test_what_an_output_does_not_hang_on_is_not_run() -> None:
    _, variant = compiled("softmax", "serial")
    executor = variant.executor
    assert isinstance(executor, CpuExecutor)
    program = executor.program
    names = [program.kernels[append.kernel] for append in program.appends]
    of = {
        port.name: {names[n].rpartition("_")[0] for n in appends}
        for port, appends in zip(program.outputs, program.needed, strict=True)
    }
    assert of["label"] == {"gemm", "argmax"}
    assert of["probabilities"] == {"gemm", "softmax"}
    outputs = [np.full((300, *s), 7, d) for s, d, _ in executor._outputs]  # pyright: ignore
    executor._fill([X], outputs, 300, 0)  # pyright: ignore
    assert np.array_equal(outputs[0], MODELS["softmax"].predict(X))
    assert (outputs[1] == 7).all()


def test_calls_for_one_output_have_times_of_their_own() -> None:
    program, variant = compiled("softmax")
    # A machine that others use makes a choice doubtful, and what is measured anew is not reported.
    measured = (program.predict(X) is not None and variant.report()["measured"] for _ in range(400))
    assert any(measured)
    assert not variant.executor.choice.auto.chosen


def test_programs_of_many_outputs_say_nothing_and_run_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irkit.schedule.needed.MOST_OUTPUTS", 2)
    x = RNG.normal(size=(5, 4))
    for count, said in ((2, True), (3, False)):
        program = irkit.jit(
            lambda x, count=count: tuple((x @ x.T * n).sum(axis=0) for n in range(count)),
            target="cpu", device="cpu2", cache=False,
        )  # fmt: skip
        for number, found in enumerate(program(x)):
            np.testing.assert_allclose(found, (x @ x.T * number).sum(axis=0), 1e-13)
        assert ("needed=" in program.source) == said
