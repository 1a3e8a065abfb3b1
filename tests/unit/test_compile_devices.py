"""What a program is planned for: vDevices by name or as they are, at hand or not."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest

import irkit
from irkit import extending
from irkit.driver.compiler.targets import planned_device
from irkit.driver.tools.opt import OptTool
from irkit.driver.tools.run import RunTool
from irkit.schedule import devices
from irkit.schedule.devices import device

TEXT = """\
func.func @main(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %0 = graph.softmax %x {axis = 1 : i64} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  func.return %0 : tensor<?x16xf32>
}
"""
MINE = dataclasses.replace(device("cpu3"), name="mine", wait_ns=5000.0)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a test registers goes again, and no GPU is at hand."""
    monkeypatch.setattr(devices, "_REGISTRY", dict(devices._REGISTRY))
    monkeypatch.setattr("irkit.runtime.cuda.availability.why_not", lambda: "no CUDA device")
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    return path


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def run(tool: type, *argv: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    status = tool(stdout=out, stderr=err).main([str(a) for a in argv])
    return status, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("chosen", ["cpu3", "test4", MINE])
def test_programs_for_a_device_run(chosen: object):
    program = irkit.compile(irkit.parse(TEXT), device=chosen)
    name = chosen if isinstance(chosen, str) else "mine"
    assert (program.target, program.report()["device"]) == ("cpu", name)
    assert program.timelines()[0].veus == device(name).veus
    x = np.random.default_rng(0).standard_normal((37, 16), dtype=np.float32)
    np.testing.assert_allclose(program(x), softmax(x), rtol=1e-5)


def test_devices_of_one_name(model: Path):
    """A cached program is never one for a device that looked otherwise, and two cannot be told apart."""
    extending.add_device(MINE)
    extending.add_device(MINE)
    first = irkit.compile(model, device="mine").report()
    devices._REGISTRY["mine"] = lambda: dataclasses.replace(MINE, veus=2)
    assert irkit.compile(model, device="mine").report() != first
    with pytest.raises(irkit.UnsupportedError, match="'mine': there is another one of this name"):
        irkit.compile(model, device=MINE)
    with pytest.raises(irkit.UnsupportedError, match="'mine' is already registered"):
        extending.add_device(MINE)
    with pytest.raises(irkit.UnsupportedError, match="device name 'a b': expected letters"):
        extending.add_device(dataclasses.replace(MINE, name="a b"))


@pytest.mark.parametrize(
    ("target", "chosen", "error", "message"),
    [
        (
            "cpu",
            "h200",
            irkit.DeviceError,
            "device 'h200' is for target 'cuda', not for target 'cpu'",
        ),
        (
            "cuda",
            "cpu4",
            irkit.DeviceError,
            "device 'cpu4' is for target 'cpu', not for target 'cuda'",
        ),
        ("cuda", "test4", irkit.DeviceError, "device 'test4' is for target 'cpu'"),
        ("cuda", None, irkit.DeviceError, "target 'cuda': no CUDA device"),
        ("tpu", "cpu", irkit.DeviceError, "target 'tpu': expected auto, cpu, cuda"),
        ("auto", "h20", irkit.UnsupportedError, "unknown device 'h20'; did you mean 'h200'?"),
    ],
)
def test_targets_and_devices_that_disagree(
    target: str, chosen: str | None, error: type[Exception], message: str, model: Path
):
    with pytest.raises(error, match=message.replace("?", r"\?")):
        irkit.compile(model, target, device=chosen)
    if target != "tpu" and chosen is not None:
        status, _, text = run(RunTool, model, f"--target={target}", f"--device={chosen}")
        assert (status, message in text) == (1, True), text


def test_the_usual_devices():
    assert planned_device("cpu") == device("cpu")
    assert planned_device() == device("cpu")
    assert planned_device("cuda", "h200") == device("h200")


def test_programs_for_a_gpu_that_is_not_there(model: Path, tmp_path: Path):
    program = irkit.compile(model, device="h200")
    assert program.target == "cuda"
    assert program.report()["device"] == "h200"
    assert program.report()["mode"] == "auto"
    assert program.timelines()[0].veus == device("h200").veus
    with pytest.raises(irkit.DeviceError, match="compiled for a CUDA device: no CUDA device; save"):
        program(np.zeros((2, 16), np.float32))
    path = tmp_path / "program.irkit"
    program.save(path)
    from irkit.runtime.artifact import Artifact

    assert Artifact.load(path).cubin[:4] == b"\x7fELF"


def test_tools_plan_for_the_device(model: Path):
    for name in ("cpu3", "test4"):
        status, _, text = run(RunTool, model, f"--device={name}")
        assert status == 0, text
    assert "veus=3" in run(OptTool, model, "-t", "numba", "--device=cpu3")[1]
    status, _, text = run(OptTool, model, "-t", "numba{target=cpu}", "--device=h200")
    assert (status, "'h200' is for target 'cuda'" in text) == (1, True), text
