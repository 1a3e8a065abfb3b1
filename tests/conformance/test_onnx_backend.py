"""ONNX's own backend tests, and the record of what passes and what is refused (docs/onnx.md).

Every test that is recorded as passing runs through the graph interpreter, and one in COMPILED of them
compiled; `tools/onnx_coverage.py`, which writes the record, compiles them all.
"""

from __future__ import annotations

import importlib.util
import json
import warnings
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from irkit.errors import DeviceError, InvalidInputError, IrkitError, UnsupportedError
from irkit.frontends.onnx import backend, import_onnx
from irkit.frontends.onnx.backend import IrkitBackend, IrkitRep
from irkit.interp.graph import run_graph
from irkit.runtime.string_border import StringBorder

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("onnx_coverage", ROOT / "tools" / "onnx_coverage.py")
assert spec is not None
assert spec.loader is not None
coverage = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coverage)

KNOWN = json.loads(coverage.RECORD.read_text(encoding="utf-8"))
OUTCOMES = {name: o for group in KNOWN["tests"].values() for name, o in group.items()}
PASSING = [name for name, o in OUTCOMES.items() if o == "pass"]
REFUSED = [name for name, o in OUTCOMES.items() if o != "pass"]
COMPILED = 8
of_this_version = pytest.mark.skipif(
    onnx.__version__ != KNOWN["onnx"], reason=f"the record is of onnx {KNOWN['onnx']}"
)


class InterpretedRep(IrkitRep):
    """Runs the imported module in the graph interpreter."""

    def compiled(self, shapes, constants):
        imported = import_onnx(self.model, shapes, constants)
        border = StringBorder(imported.info)
        return SimpleNamespace(
            run=lambda given: border.run(
                given, lambda arrays: run_graph(imported.module, imported.weights, arrays)
            )
        )


class InterpretedBackend(IrkitBackend):
    """The importer without the compiler."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return InterpretedRep(model, "cpu", kwargs)


@pytest.fixture(scope="module")
def interpreted():
    return dict(coverage.tests(InterpretedBackend))


@pytest.fixture(scope="module")
def compiled_tests(program_cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRKIT_CACHE_DIR", str(program_cache))
        yield dict(coverage.tests(IrkitBackend))


def run(test):
    # ONNX's tests make their own data, and its reference folds constants: both warn of NaN.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        test()


@of_this_version
def test_the_record_is_complete(interpreted):
    assert set(OUTCOMES) == set(interpreted)
    assert not [name for name, o in OUTCOMES.items() if o.startswith("WRONG")]
    assert len([n for op, g in KNOWN["tests"].items() if op != coverage.MODELS for n in g]) == (
        1884 - len(coverage.OTHER_ROUNDING)
    )


def test_the_page_is_of_the_record():
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page(KNOWN["onnx"], KNOWN["tests"])


@of_this_version
@pytest.mark.parametrize("name", PASSING)
def test_passes_interpreted(interpreted, name):
    run(interpreted[name])


@of_this_version
@pytest.mark.parametrize("name", [n for n in PASSING if zlib.crc32(n.encode()) % COMPILED == 0])
def test_passes_compiled(compiled_tests, name):
    run(compiled_tests[name])


@of_this_version
@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(compiled_tests, name):
    with pytest.raises(IrkitError):
        run(compiled_tests[name])


# The backend itself


def reshape():
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 6))
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, (2,))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ("a", "b"))
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    return helper.make_model(
        helper.make_graph([node], "g", [x, shape], [y]),
        opset_imports=[helper.make_opsetid("", 21)],
    )


X = np.arange(12, dtype=np.float32).reshape(2, 6)


def test_inputs_that_must_be_constant_are_named():
    with pytest.raises(UnsupportedError, match="'shape'") as info:
        import_onnx(reshape())
    assert info.value.inputs == ("shape",)
    imported = import_onnx(reshape(), constants={"shape": np.array([3, 4])})
    assert imported.info.inputs == ("x",)


@pytest.mark.parametrize(
    ("constants", "words"),
    [
        ({"z": np.zeros(2)}, "'z', which is no input"),
        ({"shape": np.zeros(2, np.int32)}, "is int32 of shape"),
        ({"shape": np.zeros(3, np.int64)}, r"of shape \(3,\)"),
    ],
)
def test_constants_that_do_not_fit(constants, words):
    with pytest.raises(InvalidInputError, match=words):
        import_onnx(reshape(), constants=constants)


def test_one_program_for_each_value():
    rep = InterpretedRep(reshape(), "cpu", {})
    for shape in ([3, 4], [12, 1], [3, 4]):
        (y,) = rep.run([X, np.array(shape)])
        np.testing.assert_array_equal(y, X.reshape(shape))
    assert len(rep.programs) == 2


def test_inputs_by_name_and_outputs_by_name():
    y = InterpretedRep(reshape(), "cpu", {}).run({"shape": np.array([4, 3]), "x": X}).y
    assert y.shape == (4, 3)


@pytest.mark.parametrize("inputs", [[X], {"x": X}])
def test_missing_inputs(inputs):
    with pytest.raises(InvalidInputError):
        InterpretedRep(reshape(), "cpu", {}).run(inputs)


def test_run_node_compiles_one_node(compiled):
    node = helper.make_node("Mod", ["a", "b"], ["y"])
    a, b = np.array([-7, 7, 5], np.int16), np.array([3, -3, 5], np.int16)
    (y,) = backend.run_node(node, [a, b], opset_version=13, cache=False)
    assert y.dtype == np.int16
    np.testing.assert_array_equal(y, np.mod(a, b))


def test_devices():
    assert backend.supports_device("CPU")
    assert not backend.supports_device("TPU")
    with pytest.raises(DeviceError, match="TPU"):
        backend.prepare(reshape(), "TPU")
