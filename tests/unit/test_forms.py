"""Forms of units: which numbers are slots, and that machine code is what it is of the text itself."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false, reportCallIssue=false

import re
import zlib

import llvmlite.binding as llvm
import pytest

from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.rkernels.registry import registered
from irkit.rkernels.templates import template_source
from irkit.runtime import machine_code
from irkit.runtime.forms import form_of
from irkit.runtime.intrinsics.engine import lowered, object_code
from irkit.runtime.intrinsics.slots import filled
from irkit.runtime.units import parts_of

NETWORK = """
func.func @main(%x: tensor<1x{c}x{n}x{n}xf32>, %w: tensor<8x{c}x3x3xf32>, %v: tensor<16x8x1x1xf32>)
    -> tensor<1x16x1x1xf32> {{
  %0 = "graph.conv"(%x, %w) <{{strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>,
    dilations = array<i64: 1, 1>, group = 1 : i64}}> : (tensor<1x{c}x{n}x{n}xf32>, tensor<8x{c}x3x3xf32>)
    -> tensor<1x8x{n}x{n}xf32>
  %1 = "graph.relu"(%0) : (tensor<1x8x{n}x{n}xf32>) -> tensor<1x8x{n}x{n}xf32>
  %2 = "graph.conv"(%1, %v) <{{strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>,
    dilations = array<i64: 1, 1>, group = 1 : i64}}> : (tensor<1x8x{n}x{n}xf32>, tensor<16x8x1x1xf32>)
    -> tensor<1x16x{n}x{n}xf32>
  %3 = "graph.global_average_pool"(%2) : (tensor<1x16x{n}x{n}xf32>) -> tensor<1x16x1x1xf32>
  %4 = "graph.softmax"(%3) <{{axis = 1 : i64}}> : (tensor<1x16x1x1xf32>) -> tensor<1x16x1x1xf32>
  func.return %4 : tensor<1x16x1x1xf32>
}}
"""


def of(body):
    """The form of a function's body, slots written S, and their values."""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    form = form_of(f"def f(a, b, p):\n{lines}\n\ndef g(a):\n    return a\n")
    text = form.text.split("\n\n")[0].split("\n", 1)[1]
    return re.sub(r"number_slot\(\d+\)", "S", text).replace("\n    ", "\n").strip(), form.values


@pytest.mark.parametrize(
    ("body", "form", "values"),
    [
        ("x = a * 3 + -4", "x = a * S + S", (3, -4)),
        ("x = (2 * 3 - 1) * a", "x = (S) * a", (5,)),
        ("for i in range(2, a, 8):\n    p[i] = 0", "for i in range(S, a, S):\n    p[i] = S", (2, 8, 0)),
        ("x = min(8, a - b)", "x = min(S, a - b)", (8,)),
        ("x = g(7)", "x = g(S)", (7,)),
        ("# m × n, ±1\nx = a * 3; b = '×'; a += 2", "# m × n, ±1\nx = a * S; b = '×'; a += S", (3, 2)),
        ("x = a if b else 5", "x = a if b else S", (5,)),
        ("while a + 3 <= b:\n    a += 2", "while a + S <= b:\n    a += S", (3, 2)),
        ("inside = 0 <= a + -3 < 224", "inside = S <= a + S < S", (0, -3, 224)),
        ("c0, c1 = 0, 64\nreturn c0, c1, 9", "c0, c1 = S, S\nreturn c0, c1, S", (0, 64, 9)),
        ("k = 3\nwhile a - k < k:\n    a += b", "k = S\nwhile a - k < k:\n    a += b", (3,)),
        ("x = a + (3 if 1 else b)", "x = a + (S if 1 else b)", (3,)),
        ("k = 8 + (3 if 0 else 4)\nx = a * k", "k = S\nx = a * k", (12,)),
        ("x = p[8 + (3 if 1 else 4.0)]", "x = p[8 + (S if 1 else 4.0)]", (3,)),
        ("multiply_pixels(2, 1, 14, 56, 58, p)", "multiply_pixels(2, 1, 14, S, S, p)", (56, 58)),
        ("multiply_tile(8, 2, 16, p, b, 64, p)", "multiply_tile(8, 2, 16, p, b, S, p)", (64,)),
    ],
)  # fmt: skip
def test_a_number_beside_what_is_none_is_a_slot(body, form, values):
    assert of(body) == (form, values)


def test_what_python_computes_is_computed_alike():
    assert of("p = cuda.local.array(64 * 32 // 256, a)") == ("p = cuda.local.array(8, a)", ())
    assert of("x = a if 96 % 32 and b else b") == ("x = a if 0 and b else b", ())
    assert of("x = p[8 + (3 if 1 else 4)]") == ("x = p[11]", ())


@pytest.mark.parametrize(
    "body",
    [
        "x = a ** 2",
        "x = p[3]",
        "x = float32(3)",
        "x = stack_int64(49)",
        "x = cuda.local.array(4, float32)",
        "if 0:\n    a = b",
        "if 3 == 1:\n    a = b",
        # Numba finds what these are, and leaves a branch out.
        "k = 3\nif k == 1:\n    a = b",
        "k = 3\nif k:\n    a = b",
        # The tuple's element, and a literal argument.
        "k = 3\nx = p[k]",
        "k = 3\nx = stack_int64(k)",
        # Two types, or two values.
        "x = 0\nx = float32(a)",
        "x = a * 3.5",
        "x = a + 9223372036854775808",
        "x = True",
        "x = a is not 3",
        "x = (a, b) * 2 ** 1",
    ],
)
def test_a_number_on_which_numba_decides_is_none(body):
    assert of(body) == (body, ())


def test_texts_that_differ_in_sizes_have_one_form(tmp_path):
    # The mean's divisor is a float; a power of two would be divided by, as no other is.
    sizes = ((3, 17), (5, 20))
    forms = [[form_of(u.text, reals=True) for u in units(tmp_path, c, n)[:3]] for c, n in sizes]
    assert [f.text for f in forms[0]] == [f.text for f in forms[1]]
    assert [f.values for f in forms[0]] != [f.values for f in forms[1]]


def test_floats_are_slots_where_they_are_asked_for():
    text = (
        "def f(a):\n    return float32(0.5) + float64(-1e300) * a + 2.5 + float32(a) + float64(3)\n"
    )
    assert form_of(text) == (text, ())
    form = form_of(text, reals=True)
    assert form.values == (0.5, -1e300)
    slots = text.replace("0.5", "real_slot(0)").replace("-1e300", "real_slot(1)")
    assert form.text == slots


@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, -1.5e-310, 1e308, 5e-324, 3.4028235e38, 1e-46])
def test_floats_are_the_same_to_the_last_bit(value):
    text = TWO_FLOATS.format(value=value)
    form = form_of(text, reals=True)
    assert [repr(v) for v in form.values] == [repr(value)] * 3
    _, plain = lowered(text, {})
    general = ir_of(form)
    assert sections(filled(general, form.values)) == sections(plain)


TWO_FLOATS = """
from numba import float32, float64
from irkit.runtime.intrinsics.cpu import float32p, float64p, int64p
from irkit.runtime.intrinsics.engine import cfunc

@cfunc("void(int64, int64, int64, int64, int64)", error_model="numpy")
def rkernel_0_of_unit(task, tasks, rows, scratch, operands):
    address = int64p(operands)
    narrow, wide = float32p(address[0]), float64p(address[1])
    for i in range(rows):
        if wide[i] > float64({value}):
            narrow[i] = narrow[i] * float32({value}) + float32(wide[i])
        else:
            wide[i] = float64({value}) - wide[i]
"""


def sections(ir):
    """Instructions, and constants beside them."""
    found = llvm.ObjectFileRef.from_data(object_code(ir))
    return [s.data() for s in found.sections() if s.is_text() or "rodata" in str(s.name())]


def ir_of(form):
    """The IR of a form, with slots."""
    return zlib.decompress(machine_code.lower(form.text).partition(b"\0")[2]).decode()


def test_machine_code_is_that_of_the_text_itself(tmp_path):
    """To the last byte, whatever the form was lowered for first."""
    checked = units(tmp_path, 3, 16)
    assert len(checked) >= 3
    for unit in checked:
        form = form_of(unit.text, reals=True)
        assert form.values
        _, plain = lowered(unit.text, {})
        general = ir_of(form)
        assert instructions(filled(general, form.values)) == instructions(plain)
        other = [2 * v + 1 for v in form.values]
        assert instructions(filled(general, other)) != instructions(plain)


def units(folder, channels, size):
    path = folder / "net.mlir"
    path.write_text(NETWORK.format(c=channels, n=size))
    return parts_of(build_artifact(read_model(path, "float32"), "cpu", False).source).units


def instructions(ir):
    found = llvm.ObjectFileRef.from_data(object_code(ir))
    return [s.data() for s in found.sections() if s.is_text()]


def test_no_template_has_a_name_of_the_intrinsics():
    for target in ("cpu", "cuda"):
        for rkernel in registered(target):
            source = template_source(rkernel)
            assert "number_slot" not in source
            assert "real_slot" not in source
