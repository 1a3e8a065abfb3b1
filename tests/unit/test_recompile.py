"""Programs saved for one GPU and loaded on another: what is said, and what is compiled anew."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_cuda import FakeDriver
from onnx import TensorProto, helper, numpy_helper
from sklearn.ensemble import RandomForestClassifier

import irkit
from irkit.driver.compiler import recompile
from irkit.driver.compiler.recompile import recompiled
from irkit.runtime.artifact import Artifact
from irkit.runtime.cuda import availability, driver, streams
from irkit.runtime.variant import Variant
from irkit.schedule import devices

RNG = np.random.default_rng(5)
SIDEWAYS = """
func.func @main(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %0 = graph.softmax %x {axis = 0 : i64} : (tensor<4x?xf32>) -> tensor<4x?xf32>
  func.return %0 : tensor<4x?xf32>
}
"""


def convolution() -> Any:
    """A network whose weights its rKernels read in another order than the model has them."""
    weights = RNG.standard_normal((24, 6, 3, 3), dtype=np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, channels, 9, 9])
        for name, channels in (("x", 6), ("y", 24))
    ]
    graph = helper.make_graph(
        [node], "g", values[:1], values[1:], [numpy_helper.from_array(weights, "w")]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def forest() -> RandomForestClassifier:
    x = RNG.standard_normal((200, 5))
    return RandomForestClassifier(4, max_depth=3, random_state=0).fit(x, x[:, 0] + x[:, 1] > 0)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No GPU is at hand, and machine code is only named: nothing here runs it."""
    monkeypatch.setattr(devices, "_REGISTRY", dict(devices._REGISTRY))
    monkeypatch.setattr(availability, "why_not", lambda: "no CUDA device")
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "irkit.runtime.cuda.compiling.compile_module",
        lambda source, entries, threads, arch: f"code for {arch}".encode(),
    )


@pytest.fixture
def at_hand(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """Asked for in a test's middle: a GPU of compute capability 9.0 is there."""
    gc.collect()
    fake = FakeDriver(multiprocessors=132)
    monkeypatch.setattr(availability, "why_not", lambda: None)
    for module in (driver, streams):
        monkeypatch.setattr(module, "api", lambda: fake)
    driver.device.cache_clear()
    yield fake
    driver.device.cache_clear()


def saved(model: Any, device: str, path: Path) -> Path:
    irkit.compile(model, device=device, dtype="float32").save(path)
    return path


def test_a_program_for_another_gpu_is_compiled_anew(tmp_path: Path, request: pytest.FixtureRequest):
    path = saved(forest(), "rtx3060", tmp_path / "p.irkit")
    fake: FakeDriver = request.getfixturevalue("at_hand")
    said = r"compiled for sm_86 \(rtx3060\), the device is fake of compute capability 9\.0"
    with pytest.raises(irkit.DeviceError, match=said):
        irkit.load(path, recompile=False)
    assert not fake.modules
    with pytest.warns(UserWarning, match=said + ": compiled anew from its IR"):
        program = irkit.load(path)
    assert set(fake.modules.values()) == {b"code for sm_90a"}
    assert program.report()["device"] == "fake"
    assert 'arch = "sm_90a"' in program.ir()
    assert program.source.count("'arch': 'sm_90a'") == 1
    assert program._methods == irkit.load(path, recompile=True)._methods
    again = tmp_path / "again.irkit"
    program.save(again)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert irkit.load(again).source == program.source


def test_a_program_for_another_gpu_is_compiled_and_saved_beside_this_one(
    tmp_path: Path, request: pytest.FixtureRequest
):
    request.getfixturevalue("at_hand")
    program = irkit.compile(forest(), device="rtx3060", dtype="float32")
    assert program.report()["device"] == "rtx3060"
    said = r"compiled for a CUDA device: .* sm_86 \(rtx3060\), the device is fake"
    with pytest.raises(irkit.DeviceError, match=said):
        program.predict(np.zeros((1, 4), np.float32))
    program.save(tmp_path / "p.irkit")


def test_a_program_for_this_architecture_runs_as_it_is(
    tmp_path: Path, request: pytest.FixtureRequest
):
    """Planned for other multiprocessors, it is planned anew only when that is asked for."""
    path = saved(irkit.parse(SIDEWAYS), "h100-pcie", tmp_path / "p.irkit")
    request.getfixturevalue("at_hand")
    assert irkit.load(path).report()["device"] == "h100-pcie"
    assert irkit.load(path, recompile=True).report()["device"] == "fake"


def test_without_xdsl_it_says_what_is_missing(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    path = saved(irkit.parse(SIDEWAYS), "a100", tmp_path / "p.irkit")
    request.getfixturevalue("at_hand")
    monkeypatch.setattr(recompile, "find_spec", lambda name: None)
    with pytest.raises(irkit.DeviceError, match=r"compiled for sm_80.*its IR, install xDSL"):
        irkit.load(path)


@pytest.mark.skipif(availability.why_not() is None, reason="there is a GPU")
def test_without_a_gpu_nothing_is_compiled(tmp_path: Path):
    path = saved(irkit.parse(SIDEWAYS), "a100", tmp_path / "p.irkit")
    driver.api.cache_clear()
    with pytest.raises(irkit.DeviceError, match="CUDA"):
        irkit.load(path)


@pytest.mark.parametrize("name", ["convolution", "forest"])
def test_the_ir_of_a_saved_program_is_all_that_it_takes(name: str, tmp_path: Path):
    """What is made anew from a program for a GPU, here for a processor, computes what the model does."""
    model = convolution() if name == "convolution" else forest()
    artifact = Artifact.load(saved(model, "rtx4090", tmp_path / "p.irkit"))
    made = recompiled(artifact, "cpu2")
    assert (made.target, made.info) == ("cpu", artifact.info)
    shape = (2, 6, 9, 9) if name == "convolution" else (30, 5)
    x = RNG.standard_normal(shape, dtype=np.float32)
    want = irkit.compile(model, device="cpu1", dtype="float32").run([x])
    for one, other in zip(Variant(made).run([x]), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_only_weights_that_the_machine_code_has_not_are_kept_twice(tmp_path: Path):
    artifact = Artifact.load(saved(convolution(), "rtx4090", tmp_path / "p.irkit"))
    assert artifact.graph_weights.keys().isdisjoint(artifact.weights)
    named = artifact.weights.keys() | artifact.graph_weights.keys()
    assert {n for n in named if n in artifact.ir["graph"]} >= artifact.graph_weights.keys()
    on_cpu = irkit.compile(convolution(), device="cpu1")._first.kept()
    assert on_cpu.graph_weights == {}


def test_a_batch_that_was_moved_stays_where_the_caller_sees_it(tmp_path: Path):
    artifact = Artifact.load(saved(irkit.parse(SIDEWAYS), "l4", tmp_path / "p.irkit"))
    made = recompiled(artifact, "cpu2")
    assert json.loads(made.info) == json.loads(artifact.info)
    x = RNG.standard_normal((4, 7), dtype=np.float32)
    (got,) = Variant(made).run([x])
    e = np.exp(x - x.max(axis=0))
    np.testing.assert_allclose(got, e / e.sum(axis=0), rtol=1e-5)
