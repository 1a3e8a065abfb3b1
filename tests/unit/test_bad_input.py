"""What no model, array, file or device can be used for is refused: one irkit error that names it."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest

import irkit
from irkit.driver.compiler.models import read_model

RNG = np.random.default_rng(5)
NET = """\
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = graph.sub %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %0 : tensor<?x4xf32>
}
"""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """One cache for all tests of this file, so that each program is compiled once."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRKIT_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """x - y, rows by 4, float32."""
    path = tmp_path_factory.mktemp("net") / "net.mlir"
    path.write_text(NET)
    return irkit.compile(path, target="cpu")


@pytest.fixture(scope="module")
def pipeline():
    """A scikit-learn model that has no meaning for NaN, and the rows it was fitted on."""
    linear = pytest.importorskip("sklearn.linear_model")
    X = RNG.standard_normal((60, 4))
    model = linear.LogisticRegression().fit(X, X[:, 0] > 0.2)
    return irkit.compile(model, target="cpu"), model, X


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def refused(error, *words):
    """`pytest.raises` of exactly this error, whose message says `words`, and with no other behind it."""

    class Refused:
        def __enter__(self):
            self.context = pytest.raises(error)
            self.info = self.context.__enter__()
            return self.info

        def __exit__(self, *details):
            if not self.context.__exit__(*details):
                return False
            assert self.info.type is error
            for word in words:
                assert word in str(self.info.value)
            assert self.info.value.__cause__ is None
            assert self.info.value.__suppress_context__ or self.info.value.__context__ is None
            return True

    return Refused()


# Arrays


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (floats(3, 5), ["shape rowsx4", "3x5"]),
        (floats(4), ["shape rowsx4", "got 4"]),
        (floats(1, 2, 4), ["1x2x4"]),
        (np.float32(1), ["scalar"]),
        (floats(3, 4).astype(np.float64), ["expected dtype float32", "float64"]),
        (np.ones((3, 4), np.int64), ["expected dtype float32", "int64"]),
        (floats(3, 4).astype(np.complex64), ["complex64"]),
        (np.array([["a"] * 4]), ["<U1"]),
        (np.array([[None] * 4]), ["object"]),
        (np.zeros((3, 4), "datetime64[s]"), ["datetime64"]),
        (np.zeros(3, [("a", "f4"), ("b", "f4")]), ["expected dtype float32"]),
        ([[1.0, 2.0], [3.0]], ["no rectangular array"]),
        ([["a", "b", "c", "d"]], ["expected numbers"]),
        ([[1j, 2, 3, 4]], ["complex128"]),
        (None, ["object"]),
        ("text", ["expected numbers"]),
        (np.ma.masked_array(floats(3, 4), np.eye(3, 4, dtype=bool)), ["masked"]),
    ],
    ids=lambda v: None if not isinstance(v, list) else "-".join(map(str, v))[:40],
)
def test_arrays_that_do_not_fit(net, x, words):
    with refused(irkit.InvalidInputError, "'input0'", *words):
        net(x, x)


def test_no_rows(net, pipeline):
    """A network has no rows of results for them; scikit-learn's models refuse them."""
    assert [len(y) for y in net.run([floats(0, 4), floats(0, 4)])] == [0]
    with refused(irkit.InvalidInputError, "1 or more rows"):
        pipeline[0].predict(np.empty((0, 4)))


def test_number_of_inputs(net):
    for given in ([], [floats(2, 4)], [floats(2, 4)] * 3):
        with refused(irkit.InvalidInputError, "expected 2 inputs", f"got {len(given)}"):
            net(*given)


@pytest.mark.parametrize("inputs", [np.ones((3, 4), np.float32), {"x": [[1.0] * 4]}, None, 3])
def test_inputs_that_are_no_list(net, inputs):
    name = type(inputs).__name__
    with refused(
        irkit.InvalidInputError, f"run takes a list, one entry per input of the model, got {name}"
    ):
        net.run(inputs)


def test_inputs_that_disagree(net):
    with refused(irkit.InvalidInputError, "disagree on the number of rows", "[2, 3]"):
        net(floats(2, 4), floats(3, 4))


def test_sparse_input(pipeline, net):
    sparse = pytest.importorskip("scipy.sparse")
    with refused(irkit.InvalidInputError, "sparse, of 1 dimensions", "accepted: 2"):
        pipeline[0].predict(sparse.coo_array(np.ones(4)))
    with refused(irkit.UnsupportedError, "sparse"):
        net(sparse.csr_matrix(np.eye(4)), floats(2, 4))


def unaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
    copy = raw.view(array.dtype).reshape(array.shape)
    copy[...] = array
    assert not copy.flags.aligned
    return copy


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "read-only": read_only,
    "unaligned": unaligned,
    "unaligned fortran": lambda a: unaligned(np.ascontiguousarray(a.T)).T,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "half": lambda a: a.astype(np.float16),
    "small integers": lambda a: (a * 9).astype(np.int8),
    "booleans": lambda a: a > 0,
    "list": lambda a: a.tolist(),
    "list of whole numbers": lambda a: (a * 9).astype(int).tolist(),
    "tuple of rows": tuple,
    "subclass": lambda a: a.view(np.matrix),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_that_work(net, layout, rows):
    x, y = floats(rows, 4), floats(rows, 4)
    given = LAYOUTS[layout](x)
    before = np.array(given)
    np.testing.assert_array_equal(net(given, y), np.array(given, np.float32) - y)
    np.testing.assert_array_equal(net(y, given), y - np.array(given, np.float32))
    np.testing.assert_array_equal(np.array(given), before)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_layouts_through_a_method(pipeline, layout, rows):
    program, model, X = pipeline
    given = LAYOUTS[layout](X[:rows].astype(np.float32))
    want = model.predict_proba(np.asarray(given))
    np.testing.assert_allclose(program.predict_proba(given), want, atol=1e-6)


def test_results_are_the_callers_own(net):
    x = floats(3, 4)
    first = net(x, x)
    second = net(x, np.zeros_like(x))
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, np.zeros((3, 4)))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_without_meaning(pipeline, value, rows):
    program, _, X = pipeline
    for dtype in (np.float64, np.float32):
        x = X[:rows].astype(dtype)
        x[-1, 2] = value
        word = "NaN" if np.isnan(value) else "infinity"
        with refused(irkit.InvalidInputError, f"'x' has {word}"):
            program.predict(x)


def test_values_where_the_largest_overflows_nothing(pipeline):
    program, model, X = pipeline
    x = np.full_like(X[:2], 1e300)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(program.predict(x), model.predict(x))


def test_missing_method(pipeline, net):
    with refused(irkit.UnsupportedError, "method 'transform'", "predict_proba"):
        pipeline[0].transform(pipeline[2])
    with refused(irkit.UnsupportedError, "method 'predict'", "none"):
        net.predict(floats(1, 4))


# Options


def test_options(net, pipeline):
    model = pipeline[1]
    with refused(irkit.DeviceError, "target 'tpu'", "auto, cpu, cuda"):
        irkit.compile(model, target="tpu")
    with refused(irkit.DeviceError, "mode 'fast' for cpu", "auto, serial, per-op"):
        irkit.compile(model, target="cpu", mode="fast")
    with refused(irkit.UnsupportedError, "dtype 'int8'", "float64 or float32"):
        irkit.compile(model, target="cpu", dtype="int8")
    with refused(irkit.UnsupportedError, "level 'numba'", "graph, tensor, task, schedule"):
        net.ir("numba")


def test_no_cuda_device():
    from irkit.runtime.cuda import availability

    if availability.why_not() is None:
        pytest.skip("there is a CUDA device")
    with refused(irkit.DeviceError, "target 'cuda'"):
        irkit.compile("net.mlir", target="cuda")


# Models


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("func.func @main(%x: tensor<4xf32>", ["bad.mlir:1:"]),
        ("", ["no func.func @main"]),
        ("builtin.module {", ["bad.mlir:1:"]),
        (NET.replace("graph.sub", "graph.sup"), ["bad.mlir:2:8", "did you mean 'graph.sub'"]),
        (NET.replace("%x, %y :", "%x, %z :"), ["bad.mlir:2:"]),
        (NET.replace("@main", "@other"), ["no func.func @main"]),
        (NET.replace("%y: tensor<?x4xf32>", "%y: tensor<?x5xf32>"), ["bad.mlir:"]),
        (NET.replace("%0 =", '%0 = "'), ["bad.mlir:"]),
        (
            NET.replace("%0 =", "%w = arith.constant dense_resource<w> : tensor<4xf32>\n  %0 ="),
            ["weights that are not there: w"],
        ),
        (
            'task.vdevice @a {kind = "test", veus = 0 : i64, threads = 1 : i64, shared_bytes = 1 : i64, '
            "wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64}}",
            ["bad.mlir:1:1", "veus of 1 or more"],
        ),
        (
            "task.program @main_schedule of @main attributes {device = @test4} {\n"
            '  %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>\n}',
            ["graph or tensor level, got the schedule level"],
        ),
    ],
)
def test_malformed_mlir(tmp_path, text, words):
    path = tmp_path / "bad.mlir"
    path.write_text(text)
    with refused(irkit.InvalidModelError, *words):
        irkit.compile(path, target="cpu")


def test_mlir_that_is_no_text(tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_bytes(b"\xff\xfe\x00module")
    with refused(irkit.InvalidModelError, "no text"):
        irkit.compile(path, target="cpu")
    with refused(irkit.InvalidModelError, "cannot read"):
        irkit.compile(tmp_path / "absent.mlir", target="cpu")
    with refused(irkit.InvalidModelError, "cannot read"):
        (tmp_path / "folder.mlir").mkdir()
        irkit.compile(tmp_path / "folder.mlir", target="cpu")


def test_damaged_weights(tmp_path):
    path = tmp_path / "net.mlir"
    path.write_text(NET)
    path.with_suffix(".safetensors").write_bytes(b"nothing of the kind")
    with refused(irkit.InvalidModelError, ".safetensors"):
        irkit.compile(path, target="cpu")


def test_a_module_stays_its_owners(net, tmp_path):
    path = tmp_path / "net.mlir"
    path.write_text(NET)
    module = read_model(path, "float32").module
    before = str(module)
    for _ in range(2):
        program = irkit.compile(module, target="cpu")
        assert str(module) == before
    assert program.source == net.source


def test_truncated_onnx(tmp_path):
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    ports = [
        onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N", 4]) for n in ("x", "y")
    ]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", ports[:1], ports[1:]))
    data = model.SerializeToString()
    path = tmp_path / "model.onnx"
    for cut in range(0, len(data) - 1, 3):
        path.write_bytes(data[:cut])
        # Protocol buffers cut between two fields parse: what is left is still no such model.
        with pytest.raises((irkit.InvalidModelError, irkit.UnsupportedError)) as info:
            irkit.compile(path, target="cpu")
        assert info.value.__suppress_context__ or info.value.__context__ is None
    with refused(irkit.InvalidModelError, "absent.onnx"):
        irkit.compile(tmp_path / "absent.onnx", target="cpu")


@pytest.mark.parametrize("model", [3, None, "model.dat", print, np.zeros(3), {}])
def test_no_model_at_all(model):
    with refused(irkit.UnsupportedError, "accepted: "):
        irkit.compile(model, target="cpu")


def test_unfitted_model():
    pytest.importorskip("sklearn")
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    for model in (
        LogisticRegression(),
        RandomForestClassifier(),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ):
        with refused(irkit.InvalidModelError, "fitted"):
            irkit.compile(model, target="cpu")


# Programs that no schedule can have

UNPLANNABLE = {
    "two dynamic dimensions": (
        "tensor<?x?xf32>",
        "%0 = graph.exp %x : (tensor<?x?xf32>) -> tensor<?x?xf32>",
        "tensor<?x?xf32>",
        "input 0 of @main: only the leading dimension can be dynamic",
    ),
    "no elements": (
        "tensor<0x4xf32>",
        "%0 = graph.exp %x : (tensor<0x4xf32>) -> tensor<0x4xf32>",
        "tensor<0x4xf32>",
        "input 0 of @main: a tensor without elements",
    ),
    "a scalar": (
        "f32",
        "%0 = arith.addf %x, %x : f32",
        "f32",
        "'func.func' has a value of type f32",
    ),
}


@pytest.mark.parametrize("name", UNPLANNABLE)
def test_programs_without_a_schedule(tmp_path, name):
    given, body, result, words = UNPLANNABLE[name]
    path = tmp_path / "model.mlir"
    path.write_text(
        f"func.func @main(%x: {given}) -> {result} {{\n  {body}\n  func.return %0 : {result}\n}}\n"
    )
    with refused(irkit.UnsupportedError, words):
        irkit.compile(path, target="cpu")


def test_indices_out_of_range_read_nothing_outside(tmp_path):
    """Such an index has no meaning; the process must live on."""
    path = tmp_path / "model.mlir"
    path.write_text(
        "func.func @main(%i: tensor<?xi64>, %t: tensor<5x4xf32>) -> tensor<?x4xf32> {\n"
        "  %0 = graph.gather %t, %i {axis = 0 : i64} : (tensor<5x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>\n"
        "  func.return %0 : tensor<?x4xf32>\n}\n"
    )
    program = irkit.compile(path, target="cpu")
    table = floats(5, 4)
    np.testing.assert_array_equal(program(np.array([4, 0, 2]), table), table[[4, 0, 2]])
    assert program(np.array([2**62, -(2**62), 1]), table).shape == (3, 4)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_what_overflows_between_steps_is_refused() -> None:
    """scikit-learn refuses a scaled value beyond float32, which its trees copy to."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    x = np.random.default_rng(0).standard_normal((50, 3))
    model = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3)).fit(x, x[:, 0])
    program = irkit.compile(model, target="cpu", dtype="float64", mode="serial")
    large = x.copy()
    large[3, 1] = 1e30
    np.testing.assert_array_equal(program.predict(large), model.predict(large))
    large[3, 1], large[4, 0] = 1e300, np.nan
    with pytest.raises(ValueError, match="too large for"):
        model.predict(large)
    with pytest.raises(irkit.InvalidInputError, match="overflows inside the model"):
        program.predict(large)
