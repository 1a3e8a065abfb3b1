"""irkit-opt, irkit-translate and irkit-run from the outside: files, exit codes, speed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx_nodes import model as onnx_model
from onnx_nodes import node
from xdsl.dialects.builtin import ModuleOp

from irkit import remarks
from irkit.context import IrkitContext
from irkit.driver.instruments import ir_dumps, reproducer
from irkit.driver.instruments.requested import RequestedInstruments
from irkit.driver.instruments.timer import Timer
from irkit.driver.tools import opt_session
from irkit.driver.tools.opt import OptTool
from irkit.driver.tools.opt_options import opt_parser
from irkit.driver.tools.run import RunTool
from irkit.driver.tools.translate import TranslateTool
from irkit.weights import WeightStore
from tests.conformance.catboost_models import kept

MODEL = """\
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {irkit.inputs = ["x"], irkit.outputs = ["y"]} {
  %w = arith.constant dense_resource<w> : tensor<4xf32>
  %y = graph.add %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    weights = WeightStore()
    weights.put("w", np.arange(4, dtype=np.float32))
    weights.put("unused", np.arange(9))
    weights.save(path.with_suffix(".safetensors"))
    return path


def run(tool: type, *argv: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    status = tool(stdout=out, stderr=err).main([str(a) for a in argv])
    return status, out.getvalue(), err.getvalue()


def test_opt_writes_the_weights_that_are_used(model: Path):
    out = model.with_name("out.mlir")
    assert run(OptTool, model, "-p", "cse", "-o", out) == (0, "", "")
    assert list(WeightStore.load(out.with_suffix(".safetensors"))) == ["w"]
    assert "graph.add" in out.read_text()
    assert not list(model.parent.glob("*.partial"))


def test_opt_leaves_the_output_alone_on_an_error(model: Path):
    out = model.with_name("out.mlir")
    out.write_text("before")
    status, _, err = run(OptTool, model, "-p", "no-such-pass", "-o", out)
    assert status == 1
    assert "unknown pass" in err
    assert out.read_text() == "before"


def test_opt_refuses_regions_nested_too_deeply(tmp_path: Path):
    depth = 2000
    path = tmp_path / "deep.mlir"
    path.write_text('"a.b"() ({\n' * depth + "}) : () -> ()\n" * depth)
    status, _, err = run(OptTool, path, "--allow-unregistered-dialect")
    assert status == 1
    assert "error: regions are nested too deeply" in err
    assert "Traceback" not in err


def test_reading_a_module_twice_keeps_the_names_of_its_weights(model: Path):
    first = run(OptTool, model)
    assert run(OptTool, model) == first
    assert "dense_resource<w>" in first[1]


def test_run_interprets_with_named_inputs(model: Path):
    inputs, outputs = model.with_name("in.npz"), model.with_name("out.npz")
    x = np.ones((2, 4), np.float32)
    np.savez(inputs, x=x)
    argv = [model, "--level=graph", "--inputs", inputs, "--outputs", outputs]
    assert run(RunTool, *argv) == (0, "", "")
    with np.load(outputs) as archive:
        np.testing.assert_array_equal(archive["y"], x + np.arange(4, dtype=np.float32))


def test_rows_that_nothing_has_room_for(model: Path, tmp_path: Path):
    """--batch says how many rows random inputs have, where that is open."""
    closed = tmp_path / "closed.mlir"
    closed.write_text(
        "func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {\n"
        "  func.return %x : tensor<2x4xf32>\n}\n"
    )
    status, _, err = run(RunTool, closed, "--level=graph", "--batch=7")
    assert status == 1
    assert err == (
        "irkit-run: error: --batch=7 of a module without an open batch (inputs: tensor<2x4xf32>)\n"
    )
    assert run(RunTool, closed, "--level=graph")[0] == 0
    inputs = tmp_path / "in.npz"
    np.savez(inputs, x=np.ones((2, 4), np.float32))
    status, _, err = run(RunTool, closed, "--level=graph", "--batch=2", "--inputs", inputs)
    assert (status, err.count("\n")) == (1, 1)
    assert "--batch is of random inputs" in err
    assert "float32[5, 4]" in run(RunTool, model, "--level=graph", "--batch=5")[1]


@pytest.mark.parametrize("tool", ["opt", "run", "translate", "reduce"])
def test_tools_as_modules(tool: str, tmp_path: Path):
    """`python -m irkit.cli.opt` is irkit-opt."""
    command = [sys.executable, "-m", f"irkit.cli.{tool}", str(tmp_path / "missing.mlir")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode != 0
    assert "error: " in found.stderr


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("tool", ["opt", "run"])
def test_output_that_there_is_no_room_for(tool: str, model: Path):
    command = [sys.executable, "-m", f"irkit.cli.{tool}", str(model)]
    command += ["--level=graph"] if tool == "run" else []
    with FULL.open("w") as full:
        found = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False
        )
    assert found.returncode == 1
    assert found.stderr == "error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize(("tool", "flag"), [(OptTool, "-o"), (RunTool, "--outputs")])
def test_an_output_without_a_name(tool, flag: str, model: Path):
    status, _, err = run(tool, model, *(["--level=graph"] if tool is RunTool else []), flag, "")
    assert (status, err) == (1, "error: cannot write '': it names no file\n")


def test_more_rows_than_there_is_memory_for(model: Path):
    status, _, err = run(RunTool, model, "--level=graph", "--batch=99999999999")
    assert (status, err.count("\n")) == (1, 1)
    assert "error: not enough memory: " in err


def test_a_closed_standard_input():
    command = f"{sys.executable} -m irkit.cli.opt <&-"
    found = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=300)
    assert found.returncode == 1
    assert found.stderr == "error: cannot read standard input: it is closed\n"


def test_run_draws_the_same_inputs_for_the_same_seed(model: Path):
    one, again, other = (run(RunTool, model, "--level=graph", f"--seed={s}") for s in (1, 1, 2))
    assert one == again != other
    assert one[1].startswith("y: float32[3, 4]\n")


@pytest.mark.parametrize(
    ("tool", "flag", "message"),
    [
        (RunTool, "--seed=-4", "argument --seed: expected 0 or more, got -4"),
        (RunTool, "--batch=0", "argument --batch: expected 1 or more, got 0"),
        (RunTool, "--batch=x", "argument --batch: invalid int value: 'x'"),
        (OptTool, "--seed=-1", "argument --seed: expected 0 or more, got -1"),
    ],
)
def test_numbers_that_flags_do_not_take(model: Path, tool: type, flag: str, message: str):
    status, _, err = run(tool, model, flag)
    assert (status, err.count("\n")) == (1, 1)
    assert message in err


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.ones((2, 4), np.float32)}, "no array for input 'x'"),
        ({"x": np.ones((2, 4))}, "input 'x' expects dtype float32, got float64"),
        ({"x": np.ones((2, 5), np.float32)}, "input 'x' expects shape ?x4, got 2x5"),
        ({"x": np.ones(4, np.float32)}, "input 'x' expects shape ?x4, got 4"),
    ],
)
def test_run_refuses_inputs_that_do_not_fit(model: Path, arrays: dict, message: str):
    inputs = model.with_name("in.npz")
    np.savez(inputs, **arrays)
    status, out, err = run(RunTool, model, "--level=graph", "--inputs", inputs)
    assert (status, out) == (1, "")
    assert message in err


def test_run_refuses_a_file_that_is_no_archive(model: Path):
    status, _, err = run(RunTool, model, "--level=graph", "--inputs", model)
    assert status == 1
    assert "not a valid .npz file" in err


def test_run_names_the_weight_that_is_missing(model: Path):
    model.with_suffix(".safetensors").unlink()
    status, _, err = run(RunTool, model, "--level=graph")
    assert status == 1
    assert "dense_resource<w>" in err


def onnx_file(path: Path) -> bytes:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", kind, [2, 4])],
        [helper.make_tensor_value_info("y", kind, [2, 4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path.read_bytes()


def test_translate_then_run(tmp_path: Path):
    source, module = tmp_path / "m.onnx", tmp_path / "m.mlir"
    onnx_file(source)
    assert run(TranslateTool, source, "-o", module) == (0, "", "")
    assert "graph.relu" in module.read_text()
    assert run(RunTool, module, "--level=graph")[0] == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.onnx", b"\x00\x01junk", "not a valid ONNX file"),
        ("m.onnx", b"", "not a valid ONNX file"),
        ("m.txt", b"tree\nversion=v4\n", "not a complete LightGBM text model"),
        ("m.json", b'{"learner": {', "XGBoost model's JSON is not readable"),
        ("m.json", b'{"learner": 3}', "is not readable: an entry is of another kind, or shorter"),
        ("m.json", b"[]", "is not readable: an entry is of another kind, or shorter"),
        ("m.json", b'{"features_info": 3', "the CatBoost model's JSON is not readable"),
        ("m.cbm", b"CBM1", "is in CatBoost's binary format (.cbm): save it as JSON"),
        ("m.pkl", b"", "a pickle may run any code"),
        ("m.mlir", b"", "this is a module already: irkit-opt and irkit-run take it"),
        ("m.bin", b"", "cannot tell the format from the suffix '.bin'"),
    ],
)
def test_translate_refuses_damaged_files(tmp_path: Path, name: str, content: bytes, message: str):
    path, module = tmp_path / name, tmp_path / "out.mlir"
    path.write_bytes(content)
    status, _, err = run(TranslateTool, path, "-o", module)
    assert status == 1
    assert f"{name}: error: " in err
    assert message in err
    assert "Traceback" not in err
    assert not module.exists()


def test_translate_tells_catboosts_json_from_xgboosts(tmp_path: Path) -> None:
    document, _, _ = kept("scaled")
    path = tmp_path / "m.json"
    path.write_text(json.dumps(document))
    status, text, _ = run(TranslateTool, path)
    assert status == 0
    assert "graph.forest" in text
    assert run(TranslateTool, path, "--from=catboost")[1] == text
    status, _, message = run(TranslateTool, path, "--from=xgboost")
    assert status == 1
    assert "XGBoost model's JSON is not readable" in message


def test_translate_of_ydfs_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ydf reads them; what it says of them is `tests.conformance.test_ydf`'s."""
    for name in ("data_spec.pb", "header.pb"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, "ydf", None)
    for given in ((), ("--from=ydf",)):
        status, _, message = run(TranslateTool, tmp_path, *given)
        assert status == 1
        assert "is the folder of a YDF model, which ydf reads: pip install ydf" in message
    (tmp_path / "header.pb").unlink()
    assert "cannot tell the format" in run(TranslateTool, tmp_path)[2]


def test_translate_for_one_batch_size(tmp_path: Path) -> None:
    """Rows that mix: where the importer can say so for any size, and where it cannot."""
    path, weights = tmp_path / "m.onnx", {"axes": np.array([0])}
    for one, open_too in (
        (node("ReduceSum", "x axes"), True),
        (node("Softmax", "x", axis=0), False),
    ):
        proto = onnx_model([one], {"x": np.zeros((1, 4), np.float32)}, weights, batch=True)
        path.write_bytes(proto.SerializeToString())
        status, out, _ = run(TranslateTool, path, "--batch=6")
        assert status == 0
        assert "%x: tensor<6x4xf32>" in out
        status, out, err = run(TranslateTool, path)
        assert status == (0 if open_too else 1)
        assert "tensor<?x4xf32>" in out or "batch=N" in err
    status, _, err = run(TranslateTool, path, "--batch=0")
    assert status == 1
    assert "batch = 0: it has 1 row or more" in err


def test_translate_refuses_a_truncated_model(tmp_path: Path):
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx_file(path)[:40])
    assert run(TranslateTool, path)[0] == 1


@pytest.mark.parametrize("tool", ["opt", "translate", "run"])
def test_help_imports_nothing_heavy(tool: str):
    # What makes a start slow is what it imports; times themselves depend on the machine.
    code = (
        f"import sys\nfrom irkit.cli.{tool} import main\n"
        "try:\n    main()\nfinally:\n"
        "    heavy = {'numpy', 'numba', 'xdsl', 'onnx'} & {m.partition('.')[0] for m in sys.modules}\n"
        "    print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"usage: irkit-{tool}")
    assert done.stderr.strip() == "[]"


def test_no_flag_no_instrument(model: Path, monkeypatch: pytest.MonkeyPatch):
    """Without flags nothing watches a pipeline, and a module is printed once, for the result."""
    texts: list[object] = []
    made = opt_session.module_text
    monkeypatch.setattr(opt_session, "module_text", lambda *a: texts.append(a) or made(*a))
    for module in (ir_dumps, reproducer):
        monkeypatch.setattr(module, "module_text", lambda *a: pytest.fail("printed for nobody"))
    assert run(OptTool, model, "-p", "canonicalize,cse,dce")[0] == 0
    assert len(texts) == 1
    options = opt_parser(io.StringIO()).parse_all([])
    requested = RequestedInstruments(options, io.StringIO(), Timer(), lambda _: None)
    with requested.for_part(IrkitContext(), ModuleOp([]), [], IrkitContext) as instruments:
        assert instruments == []
        assert remarks.current() is None
