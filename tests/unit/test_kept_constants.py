"""Constants that stay in shared memory, of rKernels that read them wherever they lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulated_loops import Emulated
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

pytest.importorskip("numba_cuda")

import irkit
from irkit.runtime.cuda.facts import read_facts
from irkit.schedule import devices
from irkit.schedule.devices import device


def twice_as_large(size: int):
    """A model that doubles the height and the width of an image, each by the same table of rows."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8, size, size))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8, 2 * size, 2 * size))
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear")
    graph = helper.make_graph([node], "larger", [x], [y], [scales])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("mode", ["persistent", "per-wave", "per-op"])
def test_they_are_copied_for_rkernels_that_have_no_copy_for_them(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    made = replace(device("h200"), name="gpu4", veus=4, multiprocessors=4)
    monkeypatch.setitem(devices._REGISTRY, "gpu4", lambda: made)
    model = twice_as_large(8)
    program = irkit.compile(model, target="cuda", device="gpu4", cache=False)
    assert "resident [" in program.ir("schedule")
    assert "run_task_resident" not in program.source
    assert "wave" in read_facts(program.source)[1].entries
    weights = program._variants["float32"].artifact.weights
    run = Emulated(monkeypatch, program.source, weights, mode, 3)
    x = np.random.default_rng(5).standard_normal((1, 8, 8, 8)).astype(np.float32)
    want = ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(run(x)[0], want, rtol=1e-5, atol=1e-6)
