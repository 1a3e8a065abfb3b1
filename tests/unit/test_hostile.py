"""Hostile and odd surroundings: strange models, many compilers at once, full disks, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irkit
from benchmarks.models import mlp, small_cnn

IMAGE = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)


def net(dims, *nodes, element=TensorProto.FLOAT, opsets=(("", 17),), out=None):
    """A model of one input x and one output y."""
    nodes = nodes or (helper.make_node("Relu", ["x"], ["y"], name="relu"),)
    sizes = [f"d{i}" for i in range(len(dims) if out is None else out)]
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", element, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
    )
    imports = [helper.make_opsetid(d, v) for d, v in opsets]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def constant(name, values):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(values)))


# Models

MODELS = {
    "negative sizes": (net([-1, -1]), "input 'x'"),
    "no elements": (net([0, 3]), "input 'x'"),
    "more elements than addresses": (net([1 << 62, 1 << 62]), "more elements than"),
    "a cycle": (
        net([3], helper.make_node("Add", ["x", "b"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Relu", ["b"], ["y"])),
        "topologically sorted",
    ),
    "a name defined twice": (
        net([3], helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])),
        "single static assignment",
    ),
    "an unknown domain": (
        net([3], helper.make_node("Wonder", ["x"], ["y"], domain="com.example", name="n"),
            opsets=(("", 17), ("com.example", 1))),
        "domain 'com.example'",
    ),
    "an operator set of the future": (net([3], opsets=(("", 999),)), "999"),
    "an axis far away": (
        net([3], helper.make_node("Softmax", ["x"], ["y"], axis=1 << 31)), "no tensor has so many"
    ),
    "a huge expansion": (
        net([3], constant("s", [1 << 45, 3]), helper.make_node("Expand", ["x", "s"], ["y"]), out=2),
        "more elements than",
    ),
    "an element type of the future": (net([3], element=120), "120"),
    "a flag that is none": (
        net([2, 2], helper.make_node("ArgMax", ["x"], ["z"], keepdims=7),
            helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT), out=1),
        "keepdims = 7: expected 0 or 1",
    ),
    "bounds of several lengths": (
        net([3], constant("a", [0]), constant("b", [1, 2]),
            helper.make_node("Slice", ["x", "a", "b"], ["y"])),
        "",
    ),
    "more parts than there are": (
        net([7], helper.make_node("Split", ["x"], ["y"], num_outputs=2**31 - 1),
            opsets=(("", 18),)),
        "num_outputs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_models_that_are_refused(name):
    model, words = MODELS[name]
    with pytest.raises((irkit.InvalidModelError, irkit.UnsupportedError)) as caught:
        irkit.compile(model, target="cpu")
    assert words in str(caught.value)


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/hostname", "a/../../weights.bin"])
def test_external_data_outside_the_folder(tmp_path, location):
    (tmp_path / "weights.bin").write_bytes(bytes(12))
    folder = tmp_path / "model"
    folder.mkdir()
    model = net([3], helper.make_node("Add", ["x", "w"], ["y"]))
    w = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[3])
    w.data_location = TensorProto.EXTERNAL
    w.external_data.add(key="location", value=location)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(irkit.InvalidModelError, match="outside the model's folder"):
        irkit.compile(folder / "m.onnx", target="cpu")


def test_external_data_through_a_link(tmp_path):
    (tmp_path / "secret.bin").write_bytes(bytes(12))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").symlink_to(tmp_path / "secret.bin")
    model = net([3], helper.make_node("Add", ["x", "w"], ["y"]))
    w = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[3])
    w.data_location = TensorProto.EXTERNAL
    w.external_data.add(key="location", value="w.bin")
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(irkit.InvalidModelError, match="outside the model's folder"):
        irkit.compile(folder / "m.onnx", target="cpu")


def test_no_rows():
    program = irkit.compile(mlp(), target="cpu")
    y = program(np.empty((0, 64), np.float32))
    assert y.shape == (0, 10)
    assert y.dtype == np.float32


# Many at once


def test_threads_compile_one_model(tmp_path, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))
    answers, errors = [], []

    def work():
        try:
            answers.append(irkit.compile(small_cnn(), target="cpu")(IMAGE))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert all((a == answers[0]).all() for a in answers)


# Disks


_LIMITED = """
import resource, signal, sys
import numpy as np
import irkit
from benchmarks.models import small_cnn
model, (size, path) = small_cnn(), sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
try:
    program = irkit.compile(model, target="cpu")
    print("compiled", program(np.zeros((1, 3, 16, 16), np.float32)).shape)
    program.save(path)
except irkit.ArtifactError as error:
    print("ArtifactError", error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
@pytest.mark.parametrize("size", [0, 5000])
def test_no_room_for_files(tmp_path, size):
    """Files cannot grow beyond `size` bytes, as on a disk that is full."""
    cache = tmp_path / "cache"
    environment = {**os.environ, "IRKIT_CACHE_DIR": str(cache), "PYTHONPATH": os.getcwd()}
    path = tmp_path / "p.irkit"
    command = [sys.executable, "-W", "ignore", "-c", _LIMITED, str(size), str(path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    # It needs no file to run; what was asked for is one.
    assert run.stdout.startswith("compiled (1, 10)\nArtifactError"), run.stdout
    assert not path.exists()
    assert not list(cache.rglob("*.irkit"))


_WAIT_AND_COMPILE = """
import sys
import numba, numpy as np  # an interrupted import of theirs cannot be repeated
import irkit
from benchmarks.models import small_cnn
numba.njit(lambda: 0)()  # nor what Numba sets up with the first function it compiles
print("ready", flush=True)
try:
    irkit.compile(small_cnn(), target="cpu")
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
y = irkit.compile(small_cnn(), target="cpu")(np.zeros((1, 3, 16, 16), np.float32))
print("afterwards", y.shape)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("after", [0.3, 0.8, 1.5, 2.2])
def test_interrupted_compilations_leave_nothing_half_done(tmp_path, after):
    environment = {**os.environ, "IRKIT_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-W", "ignore", "-c", _WAIT_AND_COMPILE]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        try:
            lines = process.communicate(timeout=500)[0].split("\n")
        finally:
            process.kill()
    assert process.returncode == 0
    assert lines[0] in ("interrupted", "finished")
    assert lines[1] == "afterwards (1, 10)"
    assert not [p for p in tmp_path.rglob("*") if "partial" in p.name]


def test_programs_cut_at_every_kilobyte(tmp_path):
    path = tmp_path / "p.irkit"
    irkit.compile(mlp(), target="cpu").save(path)
    data, cut = path.read_bytes(), tmp_path / "cut.irkit"
    for length in range(0, len(data), 1024):
        cut.write_bytes(data[:length])
        with pytest.raises(irkit.ArtifactError, match="cut"):
            irkit.load(cut)


def test_onnx_files_cut_anywhere(tmp_path):
    data, cut = small_cnn().SerializeToString(), tmp_path / "cut.onnx"
    for length in range(0, len(data), max(len(data) // 60, 1)):
        cut.write_bytes(data[:length])
        try:
            irkit.compile(cut, target="cpu")
        except (irkit.InvalidModelError, irkit.UnsupportedError):
            continue
        assert onnx.load(cut) == small_cnn(), f"a file of {length} bytes was taken"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_pipes_and_devices_are_never_replaced(tmp_path):
    """`-o /dev/null`, tried by root, must not make a file of it."""
    from irkit.driver.diagnostics.diagnostic import UserError
    from irkit.driver.execution.arrays import write_arrays
    from irkit.driver.files.model_files import write_text, write_weights
    from irkit.weights import WeightStore

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    read: list[str] = []
    reader.start()
    write_text(str(pipe), "text")
    reader.join()
    assert read == ["text"]
    store = WeightStore()
    write_weights(str(pipe), store, {store.add(IMAGE)})
    with pytest.raises(UserError, match="no regular file"):
        write_arrays(str(pipe), {"x": IMAGE})
    with pytest.raises(irkit.ArtifactError, match="no regular file"):
        irkit.compile(mlp(), target="cpu").save(pipe)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.parametrize("equation", ["", ".", ".. ->", "i.j->", b"\xff"])
def test_an_einsum_without_an_equation_is_refused(equation):
    """ONNX's shape inference would never end."""
    from onnx import TensorProto, helper

    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, []) for n in "xy"]
    node = helper.make_node("Einsum", ["x"], ["y"], equation=equation)
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    with pytest.raises(irkit.InvalidModelError, match="is no equation"):
        irkit.compile(made, target="cpu")


MODULE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("opt m.mlir >&-", 1, "error: cannot write the output: standard output is closed\n"),
        ("opt --help >&-", 1, "error: cannot write the output: standard output is closed\n"),
        ("run m.mlir >&-", 1, "error: cannot write the output: standard output is closed\n"),
        ("opt m.mlir >/dev/full", 1, "error: cannot write the output: No space left on device\n"),
        ("opt nothing.mlir 2>&-", 1, ""),
        (
            "run m.mlir --inputs m.mlir",
            1,
            "m.mlir: error: not a valid .npz file: it does not begin",
        ),
        ("run m.mlir --device=", 1, "m.mlir: error: unknown device ''; known: a10"),
        ("opt m.mlir --to=schedule --device=nowhere", 1, "unknown device 'nowhere'; known: a10"),
        ("opt m.mlir -o .", 1, "error: cannot write '.': it names no file\n"),
    ],
)
def test_tools_whose_streams_and_names_are_none(tmp_path, command, status, said):
    (tmp_path / "m.mlir").write_text(MODULE)
    tool, _, rest = command.partition(" ")
    shell = f"'{sys.executable}' -m irkit.cli.{tool} {rest}"
    done = subprocess.run(shell, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status
    assert said in done.stderr
    assert done.stderr.count("\n") <= 1
    assert not done.stdout


def test_an_interrupted_tool_says_so(tmp_path):
    rows = "".join(f"  %y{n + 1} = graph.exp %y{n} : (T) -> T\n" for n in range(400))
    text = f"func.func @main(%y0: T) -> T {{\n{rows}  func.return %y400 : T\n}}\n"
    (tmp_path / "m.mlir").write_text(text.replace("T", "tensor<4xf32>"))
    shell = [sys.executable, "-m", "irkit.cli.opt", "m.mlir", "--to=schedule", "--device=test4"]
    shell += ["--print-ir-before-all"]
    tool = subprocess.Popen(
        shell, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert tool.stderr is not None
    tool.stderr.readline()
    tool.send_signal(signal.SIGINT)
    _, said = tool.communicate(timeout=300)
    assert tool.returncode == 130
    assert said.endswith("irkit-opt: interrupted\n")
    assert "Traceback" not in said
