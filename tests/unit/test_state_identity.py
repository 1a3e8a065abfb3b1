"""State on disk is that of one model: files of another are refused, with what differs, and change nothing."""
# pyright: basic

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import irkit
from irkit.errors import ArtifactError, InvalidInputError, UnsupportedError
from irkit.runtime.state_identity import IDENTITY
from irkit.training import layers, losses, schedules
from irkit.training.optimizers import SGD, Adam, AdamW

OPTIONS: dict[str, Any] = {"target": "cpu", "cache": False}
PATH = "state.safetensors"


def start() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"w": rng.standard_normal((5, 4)), "v": rng.standard_normal((4, 3))}


def model(p: Any, x: Any) -> Any:
    return np.tanh(x @ p["w"]) @ p["v"]


def of_other_names(weights: Any, rows: Any) -> Any:
    """The same model, by another name, at other lines, its variables called otherwise."""
    hidden = np.tanh(rows @ weights["w"])
    return hidden @ weights["v"]


def other_model(p: Any, x: Any) -> Any:
    return np.sin(x @ p["w"]) @ p["v"]


def of_a_constant(p: Any, x: Any) -> Any:
    return np.tanh(x @ p["w"]) @ (p["v"] * np.array([1.0, 1.0, 2.0]))


def weighted(z: Any, y: Any) -> Any:
    return losses.mean_squared_error(z, y) * 2


def step(
    function: Any = model, loss: Any = losses.mean_squared_error, optimizer: Any = None, **more: Any
) -> Any:
    optimizer = optimizer or Adam(0.01)
    return irkit.training_step(
        function, loss, optimizer, parameters=start(), **{**OPTIONS, **more}
    )  # fmt: skip


def batch(rows: int = 6, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, 5)), rng.standard_normal((rows, 3))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    trained = step()
    for n in range(3):
        trained(*batch(6, n))
    trained.save(tmp_path / PATH)
    return tmp_path / PATH


def refused(made: Any, path: Path, text: str, error: type[Exception] = InvalidInputError) -> None:
    """That `load` says this, and leaves the state."""
    before = made.state.arrays()
    with pytest.raises(error, match=text) as found:
        made.load(path)
    assert "\n" not in str(found.value)
    for name, array in made.state.arrays().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("trained", [False, True], ids=["new", "trained"])
def test_state_of_another_model_of_the_same_names_and_shapes(saved: Path, trained: bool) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"function": other_model}, r"its model is 'model', here 'other_model'\. Nothing"),
        ({"function": of_a_constant}, r"its model is 'model', here 'of_a_constant'"),
        ({"loss": weighted}, r"its loss is 'mean_squared_error', here 'weighted'\. Nothing"),
        ({"loss": losses.huber}, r"other=\['loss'\]\) takes it"),
        ({"optimizer": AdamW(0.01)}, r"its optimizer is Adam\(rate=0.01.*, here AdamW\(rate=0.01,"),
        ({"optimizer": Adam(0.02)}, r"is Adam\(rate=0.01.*here Adam\(rate=0.02.*\['optimizer'\]"),
        ({"optimizer": Adam(0.01, clip_norm=1.0)}, r"here Adam\(.*clip_norm=1.0"),
        ({"optimizer": Adam(schedules.cosine(0.01, 9))}, r"here Adam\(rate=cosine.<locals>.at"),
    ]
    for given, text in cases:
        made = step(**given)
        if trained:
            made(*batch(4))
        refused(made, saved, text)


def test_schedules_are_told_apart_by_what_they_compute(tmp_path: Path) -> None:
    first = step(optimizer=Adam(schedules.cosine(0.01, 9)))
    first(*batch())
    first.save(tmp_path / PATH)
    step(optimizer=Adam(schedules.cosine(0.01, 9))).load(tmp_path / PATH)
    other = step(optimizer=Adam(schedules.cosine(0.01, 8)))
    refused(other, tmp_path / PATH, r"its optimizer is another one\. Nothing")


def test_what_is_named_may_be_another(saved: Path) -> None:
    made = step(optimizer=Adam(0.02))
    made.load(saved, other=["optimizer"])
    assert made.steps == 3
    np.testing.assert_array_equal(made.parameters["w"], load_file(saved)["parameters.w"])
    step(other_model).load(saved, other=["model"])
    step(other_model, weighted).load(saved, other=("model", "loss"))
    for wrong in ("model", ["modell"], [""]):
        with pytest.raises(UnsupportedError, match="expected names among model, loss, optimizer"):
            made.load(saved, other=wrong)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_same_model_goes_on_bit_for_bit(saved: Path, compiled: bool) -> None:
    """By whatever name, for inputs of other shapes, of another start, within a budget."""
    wanted = step()
    for n in range(5):
        loss = wanted(*batch(6, n))
    for made in (
        step(of_other_names),
        step(lambda p, x: np.tanh(x @ p["w"]) @ p["v"], stop_on_nan=True),
    ):
        if compiled:
            made(*batch(9))
        made.load(saved)
        assert made.steps == 3
        made(*batch(6, 3))
        assert made(*batch(6, 4)) == loss
        for name, array in made.state.arrays().items():
            np.testing.assert_array_equal(array, wanted.state[name])


def test_another_device_and_a_budget_are_the_same_model(saved: Path) -> None:
    made = step(device="cpu4", memory_budget=100_000)
    made(*batch())
    made.load(saved)
    assert made.steps == 3
    for name, array in load_file(saved).items():
        np.testing.assert_array_equal(made.state[name], array)


def test_a_file_is_the_same_in_another_process(saved: Path, tmp_path: Path) -> None:
    code = (
        "import test_state_identity as t, pathlib\n"
        f"made = t.step(); made(*t.batch(2)); made.load(pathlib.Path({str(saved)!r}))\n"
        "print(made.steps)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True,
        check=False, env={**_environment(), "PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert found.stdout == "3\n", found.stderr


def _environment() -> dict[str, str]:
    import os

    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def noisy(p: Any, x: Any, training: bool, statistics: Any, key: Any) -> Any:
    x = layers.dropout(key, x, 0.5, training=training)
    if training:
        statistics["mean"] *= 0.5
        statistics["mean"] += x.mean(axis=0)
    return (x - statistics["mean"]) @ p["w"] @ p["v"]


def test_models_of_keys_and_statistics(tmp_path: Path) -> None:
    """A seed is no part of the model: the key is state."""

    def made(function: Any, seed: int) -> Any:
        return irkit.training_step(
            function, losses.mean_squared_error, SGD(0.1, momentum=0.9), parameters=start(),
            statistics={"mean": np.zeros(5)}, seed=seed, **OPTIONS,
        )  # fmt: skip

    def calmer(p: Any, x: Any, training: bool, statistics: Any, key: Any) -> Any:
        x = layers.dropout(key, x, 0.25, training=training)
        if training:
            statistics["mean"] *= 0.5
            statistics["mean"] += x.mean(axis=0)
        return (x - statistics["mean"]) @ p["w"] @ p["v"]

    def forgetful(p: Any, x: Any, training: bool, statistics: Any, key: Any) -> Any:
        x = layers.dropout(key, x, 0.5, training=training)
        if training:
            statistics["mean"] *= 0.25
            statistics["mean"] += x.mean(axis=0)
        return (x - statistics["mean"]) @ p["w"] @ p["v"]

    one, two = made(noisy, 1), made(noisy, 2)
    one(*batch())
    one.save(tmp_path / PATH)
    two.load(tmp_path / PATH)
    assert one(*batch()) == two(*batch())
    for other in (calmer, forgetful):
        refused(made(other, 1), tmp_path / PATH, "its model is 'noisy', here")


def test_a_model_that_reads_arrays_beside_its_arguments(tmp_path: Path) -> None:
    """Their values are inputs; their shapes are the model's."""

    def reading(array: np.ndarray) -> Any:
        return step(lambda p, x: np.tanh(x @ p["w"]) @ p["v"] + array)

    one = reading(np.ones(3))
    one(*batch())
    one.save(tmp_path / PATH)
    reading(np.zeros(3)).load(tmp_path / PATH)
    refused(reading(np.ones((1, 3))), tmp_path / PATH, "its model is another one|its model is")


def test_inputs_that_the_model_cannot_take_are_of_another(tmp_path: Path) -> None:
    def of_two(p: Any, x: Any, scale: Any) -> Any:
        return np.tanh(x @ p["w"]) @ p["v"] * scale

    made = step(of_two)
    x, y = batch()
    made(x, np.ones(3), y)
    made.save(tmp_path / PATH)
    refused(step(), tmp_path / PATH, "its model is '.*of_two', here 'model'")


class Pair:
    """What a loss alone understands."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


def of_a_pair(found: Pair, y: Any) -> Any:
    return losses.mean_squared_error(found.first + found.second, y)


def test_outputs_that_are_no_arrays(tmp_path: Path) -> None:
    def doubled(p: Any, x: Any) -> Any:
        return Pair(model(p, x), x @ p["w"] @ p["v"])

    def tripled(p: Any, x: Any) -> Any:
        return Pair(model(p, x), 3 * (x @ p["w"] @ p["v"]))

    made = step(doubled, of_a_pair)
    made(*batch())
    made.save(tmp_path / PATH)
    step(doubled, of_a_pair).load(tmp_path / PATH)
    refused(step(tripled, of_a_pair), tmp_path / PATH, "its model is '.*doubled', here '.*tripled'")


def test_a_model_that_breaks_on_the_inputs_of_another(tmp_path: Path) -> None:
    def breaking(p: Any, x: Any) -> Any:
        return {6: x}[len(x)] @ p["w"] @ p["v"]

    made = step()
    made(*batch(5))
    made.save(tmp_path / PATH)
    refused(step(breaking), tmp_path / PATH, "its model is 'model', here '.*breaking'")


def test_files_that_do_not_say_of_which_model(saved: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.safetensors"
    save_file(load_file(saved), plain)
    made = step()
    refused(
        made,
        plain,
        r"does not say of which model and loss and optimizer, as files of other tools and of earlier "
        r"versions of irkit do not\. Nothing was changed; load\(\.\.\., "
        r"other=\['model', 'loss', 'optimizer'\]\) takes",
    )
    made.load(plain, other=["model", "loss", "optimizer"])
    assert made.steps == 3
    step().save(plain)
    refused(made, plain, r"say of which model and loss, as it was saved before a step was compiled")
    between = step()
    between.load(saved)
    between.save(plain)
    step().load(plain)
    refused(step(other_model), plain, "its model is 'model', here 'other_model'")


def changed(saved: Path, change: Callable[[dict[str, np.ndarray]], Any]) -> Path:
    from irkit.runtime.program_state import read_state

    arrays, said = read_state(saved)
    change(arrays)
    save_file(arrays, saved, said)
    return saved


def test_files_with_other_arrays(saved: Path) -> None:
    whole = saved.read_bytes()

    def of(name: str, array: np.ndarray) -> Any:
        return lambda arrays: arrays.update({name: array})

    cases: list[tuple[Any, str]] = [
        (lambda a: a.pop("mean.w"), r"state of another program: it lacks 'mean.w'$"),
        (of("extra", np.zeros(1)), r"it has 'extra'$"),
        (of("steps", np.array(3, np.int32)), r"'steps' is int32\[\], of the program int64\[\]"),
        (of("parameters.w", np.zeros((5, 4), np.float32)), r"'parameters.w' is float32\[5, 4\]"),
        (of("parameters.w", np.zeros((5, 4), ml_dtypes.bfloat16)), r"w' is bfloat16\[5, 4\], of"),
        (of("parameters.w", np.zeros((4, 5))), r"'parameters.w' is float64\[4, 5\], of the"),
        (of("steps", np.zeros(1, np.int64)), r"'steps' is int64\[1\], of the program int64\[\]"),
        (lambda a: a.clear(), r"lacks 'parameters.w', .* 'steps'$"),
        (lambda a: a.update({f"n{n}": np.zeros(1) for n in range(99)}), r"it has 'n0'.*and 91 more$"),
    ]  # fmt: skip
    made = step()
    for change, text in cases:
        saved.write_bytes(whole)
        refused(made, changed(saved, change), text)


def test_damaged_files(saved: Path, tmp_path: Path) -> None:
    whole, made = saved.read_bytes(), step()
    refused(made, tmp_path / "none", "cannot read '.*none': No such file", ArtifactError)
    refused(made, tmp_path, "cannot read", ArtifactError)
    header = int.from_bytes(whole[:8], "little")
    for size in (0, 1, 7, 8, 9, 8 + header // 2, 8 + header - 1, 8 + header, len(whole) - 1):
        saved.write_bytes(whole[:size])
        refused(made, saved, "no safetensors file", ArtifactError)
    saved.write_bytes(whole + b"\0")
    refused(made, saved, "no safetensors file", ArtifactError)
    rng = np.random.default_rng(0)
    for _ in range(60):
        # A byte of the header may be a letter of a name, or white space: whatever it says, nothing else
        # comes of it than one of the two errors.
        at = int(rng.integers(0, 8 + header))
        saved.write_bytes(whole[:at] + bytes([int(rng.integers(0, 256))]) + whole[at + 1 :])
        with suppress(ArtifactError, InvalidInputError):
            made.load(saved)
            assert made.steps == 3


def test_16_bit_floats_are_kept(tmp_path: Path) -> None:
    def made() -> Any:
        return irkit.training_step(
            lambda p, x: x @ p, losses.mean_squared_error, SGD(0.5, momentum=0.5),
            parameters=np.ones((3, 2), ml_dtypes.bfloat16), **OPTIONS,
        )  # fmt: skip

    x, y = np.ones((4, 3), ml_dtypes.bfloat16), np.zeros((4, 2), ml_dtypes.bfloat16)
    one, two = made(), made()
    one(x, y)
    one.save(tmp_path / PATH)
    two.load(tmp_path / PATH)
    assert one(x, y) == two(x, y)
    assert one.parameters.tobytes() == two.parameters.tobytes()


# Programs that irkit.compile makes

TEXT = """
func.func @main(%x: tensor<2x3xf32>, %count: tensor<1xf32>) -> (tensor<2x3xf32>, tensor<1xf32>)
    attributes {irkit.inputs = ["x", "count"], irkit.outputs = ["y", "next"]} {
  %y = graph.add %x, %count : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %next = graph.add %count, %one : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  func.return %y, %next : tensor<2x3xf32>, tensor<1xf32>
}
"""


def program(text: str = TEXT, **options: Any) -> Any:
    options = {"device": "cpu2", **options}
    return irkit.compile(irkit.parse(text), state={"count": "next"}, cache=False, **options)


def test_programs_load_state_of_the_same_model_alone(tmp_path: Path) -> None:
    one = program(initial_state={"count": [4.0]})
    one.state.save(tmp_path / PATH)
    for same in (program(), program(TEXT.replace("%one", "%uno")), program(fastmath=())):
        same.state.load(tmp_path / PATH)
        assert same.state["count"].tolist() == [4.0]
    one.save(tmp_path / "program.irkit")
    irkit.load(tmp_path / "program.irkit").state.load(tmp_path / PATH)
    for text in (TEXT.replace("dense<1.0>", "dense<2.0>"), TEXT.replace("graph.add", "graph.mul")):
        other = program(text)
        with pytest.raises(InvalidInputError, match=r"its program is another one\. Nothing"):
            other.state.load(tmp_path / PATH)
        assert other.state["count"].tolist() == [0.0]
        other.state.load(tmp_path / PATH, other=["program"])
        assert other.state["count"].tolist() == [4.0]


def test_a_program_for_another_device_is_of_the_same_model() -> None:
    devices = ("cpu1", "cpu8", "h200")
    found = {program(device=d).report()[IDENTITY] for d in devices}
    assert len(found) == 1
    assert None not in found
