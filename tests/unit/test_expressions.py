"""The language of tensor expressions: its text, its ranges, its types, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import irkit
from irkit.expressions.binding import bind, program_of
from irkit.expressions.grammar import parse
from irkit.expressions.printing import text_of
from irkit.expressions.syntax import ExpressionError, Statement

F32, F64, I64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)

RANGES = {
    "C(m, n) +=! A(m, k) * B(k, n)": (((3, 4), (4, 5)), "m in 0:3, n in 0:5, k in 0:4"),
    "O(i) +=! A(i + k) * K(k)": (((10,), (3,)), "i in 0:8, k in 0:3"),
    "O(i) = A(2 * i) + A(2 * i + 1)": (((9,),), "i in 0:4"),
    "O(i) = A(3 - i)": (((4,),), "i in 0:4"),
    "O(i) = A(i) * B(i)": (((4,), (6,)), "i in 0:4"),
    "O(i) max=! A(2 * i + k) where k in 1:4": (((10,),), "i in 0:4, k in 1:4"),
    "O(i) = 2.5 where exists A(i)": (((7,),), "i in 0:7"),
    "s() +=! A(i, i)": (((3, 5),), "i in 0:3"),
}


@pytest.mark.parametrize("text", list(RANGES))
def test_ranges_are_inferred(text):
    shapes, wanted = RANGES[text]
    steps, _ = bind(program_of(text), shapes, [F32] * len(shapes))
    assert str(steps[0].domain) == wanted


REFUSED = {
    "C(m = 3": ((), (1, 5), "'=' does not belong here; expected ')', ','"),
    "C(m,n) +=": ((), (1, 10), "the end of the text does not belong here"),
    "C(m) @ 3": ((), (1, 6), "'@' does not belong here"),
    "O(i) +=! A(i + k)": (
        ((9,),),
        (1, 12),
        "ambiguous: no read says alone over which range 'i', 'k'",
    ),
    "O(i) = A(i, k)": (((9, 9),), (1, 1), "'k' is no index of 'O': reduce over it"),
    "O(i) = A(i)\n  + foo(i)": (
        ((9,), (9, 9)),
        (2, 5),
        "'foo' has 2 dimension(s), and 1 index(es) here",
    ),
    "O(i) = A(i + 1) where i in 0:9": (((9,),), (1, 12), "may be from 1 to 9, and its size is 9"),
    "O(i) = A(i - 1)": (((9,),), (1, 1), "'i' starts at 1, so that 'O' had no first element"),
    "O(i, j) = B(i) * C(i + j) * D(j)": (((3,), (4,), (3,)), (1, 22), "may be from 0 to 4"),
    "O(i) = A(i) where i in 3:3": (((9,),), (1, 19), "the range 3:3 of 'i' is empty"),
    "O(i, i) = A(i)": (((9,),), (1, 1), "an index of the result stands twice"),
    "O(i) = A(i); O(i) = A(i)": (((9,),), (1, 14), "'O' is assigned twice"),
    "O(i) += A(i)": (((9,),), (1, 1), "'O' has no value yet to add to"),
    "O(i) = A(i); O(i) += B(i)": (
        ((4,), (2,)),
        (1, 14),
        "'O' has shape [4], and this is added to [2] of it: add to all of it, or give the sum another",
    ),
    "O(i) = A(i); O(i) max= 2 where i in 1:3": (((4,),), (1, 14), "'i' starts at 1"),
    "O(i) = A(i) && A(i)": (((9,),), (1, 13), "'&&' of float32: expected a condition"),
    "O(i) = A(A(i))": (((9,),), (1, 10), "an index of type float32"),
    "O(i) = exp(A(i), 2)": (((9,),), (1, 8), "'exp' takes 1 argument(s), and 2 here"),
    "O(i) = A(i) % 2": (((9,),), (1, 13), "a remainder is of whole numbers"),
    "O(i) +=! A(i) > 0": (((9,),), (1, 1), "a reduction of conditions"),
    "def f(float(N) A) -> (B) { C(i) = A(i) }": (((9,),), (1, 5), "the result 'B' is not assigned"),
    "def f(float(N) A) -> (A) { A(i) = 1 }": (((9,),), (1, 28), "'A' is a parameter"),
    "def f(float(N) A) -> (B) { B = g(A) }": (
        ((9,),),
        (1, 32),
        "there is no tensor or function 'g'",
    ),
    "def f(double(N) A) -> (B) { B(i) = A(i) }": (
        ((9,),),
        (1, 17),
        "'A' is of float32; expected float64",
    ),
    "def f(float(N, N) A) -> (B) { B(i) = A(i, i) }": (
        ((9, 8),),
        (1, 19),
        "expected N = 9 in place of 8",
    ),
    "def f(float(N) A) -> (B) { B = f(A) }": (((9,),), (1, 5), "'f' calls itself"),
}


@pytest.mark.parametrize("text", list(REFUSED))
def test_what_has_no_meaning_is_refused_at_its_place(text):
    shapes, place, message = REFUSED[text]
    with pytest.raises(ExpressionError) as caught:
        bind(program_of(text), shapes, [F32] * len(shapes))
    error = caught.value
    assert message in str(error)
    assert (error.line, error.column) == place
    assert str(error).splitlines()[-1] == "  " + " " * (place[1] - 1) + "^"


PRINTED = [
    "C(m, n) +=! A(m, k) * (B(k, n) - 2.5) / (x() / y() / z())",
    "O(i) = a() - (b() - c()) - d()",
    "O(i) max=! (A(i) > 0 ? 1 : 0) * (i % 3 == 0 && !(i < 2 || i > 5) ? -A(i) : pow(A(i), -2))",
    "O(i) += A(I(i + 1), -i) where i in 1:4, exists B(i, j)",
    "s() *= (A(i) < 2) == (A(i) > 1) ? 1e-05 : float(i)",
]


@pytest.mark.parametrize("text", PRINTED)
def test_what_is_printed_reads_the_same(text):
    (statement,) = parse(text)
    assert isinstance(statement, Statement)
    assert text_of(statement) == text
    assert parse(text_of(statement)) == [statement]


def test_functions_are_written_into_what_calls_them():
    text = """
    def mm(T(M, K) A, T(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
    def chain(float(P, Q) X, float(Q, R) Y, float(R, S) Z) -> (C) {
      A = mm(X, Y)   # under names of the caller's
      C = mm(A, Z)
      C(i, j) += 1
    }
    """
    op = irkit.te.op(text, target="cpu")
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 5), (5, 2)))
    np.testing.assert_allclose(op(x, y, z), x @ y @ z + 1, rtol=1e-5)
    with pytest.raises(ExpressionError, match="expected"):
        op(x, y, z.astype(np.float64))
    with pytest.raises(ExpressionError, match="a tensor expression is a string, got NoneType"):
        irkit.te.op(None)
    with pytest.raises(ExpressionError, match="in place of 3"):
        op(x, x, z)
    with pytest.raises(ExpressionError, match=r"takes 3 tensor\(s\) \(X, Y, Z\), got 2"):
        op(x, y)


def test_ranges_are_printed():
    op = irkit.te.op("M(i) max=! X(i, k); O(i, k) = exp(X(i, k) - M(i))")
    assert op.explain((3, 4)).splitlines() == [
        "M(i) max=! X(i, k) where i in 0:3, k in 0:4  # float32[3]",
        "O(i, k) = exp(X(i, k) - M(i)) where i in 0:3, k in 0:4  # float32[3, 4]",
    ]
    assert (op.parameters, op.results) == (("X",), ("O",))


def test_indices_among_the_arrays_are_checked():
    op = irkit.te.op("O(i, j) = X(I(i), j)", target="cpu")
    x = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(op(x, np.array([3, 0])), x[[3, 0]])
    for wrong in (4, -1):
        with pytest.raises(IndexError, match=r"I\(i\) in 'X': an index is out of bounds"):
            op(x, np.array([3, wrong]))


def test_an_index_under_a_condition_is_checked_where_that_holds():
    op = irkit.te.op("O(i) = I(i) >= 0 ? X(I(i)) : -1", target="cpu")
    x = np.arange(4.0)
    np.testing.assert_array_equal(op(np.array([2, -7]), x), [2, -1])
    with pytest.raises(IndexError):
        op(np.array([4, -7]), x)


def test_what_is_read_under_a_condition_that_never_holds_is_never_out_of_bounds():
    text = "O(i) = i > 3 && i < 2 ? A(max(i, 7)) + A((i + 9) / 2) : A(i) where i in 0:3"
    op = irkit.te.op(text, target="cpu")
    np.testing.assert_array_equal(op(np.arange(3.0)), np.arange(3.0))
    gradient = irkit.grad(lambda a: (op(a) ** 2).sum(), target="cpu")
    np.testing.assert_array_equal(gradient(np.arange(3.0)), 2 * np.arange(3.0))


def test_operators_are_part_of_traced_functions_and_their_gradients():
    attend = irkit.te.op("S(i, j) +=! Q(i, d) * K(j, d)")

    def loss(q, k):
        return (np.tanh(attend(q, k)) ** 2).sum()

    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((3, 4)), rng.standard_normal((5, 4))
    got = irkit.grad(loss, argnums=(0, 1), target="cpu")(q, k)
    s = q @ k.T
    slope = 2 * np.tanh(s) * (1 - np.tanh(s) ** 2)
    np.testing.assert_allclose(got[0], slope @ k, rtol=1e-9)
    np.testing.assert_allclose(got[1], slope.T @ q, rtol=1e-9)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("C(m, n) +=! A(m, k) * B(k, n)", ((8, 16), (16, 8))),
        ("C() +=! A(k) * B(k)", ((700,), (700,))),
        ("C(m) +=! A(k) * B() where m in 0:3", ((700,), ())),
    ],
)
def test_operators_compile_for_a_gpu(text, shapes):
    op = irkit.te.op(text, target="cuda", device="h200")
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    assert "task.program" in op.jitted.compile(a, b).ir("schedule")


HOSTILE = {
    "-" * 10_000 + "A(i)": "nested more than 150 deep",
    "abs(" * 1000 + "A(i)" + ")" * 1000: "nested more than 150 deep",
    "+".join(["A(i)"] * 3000): "nested more than 150 deep",
    "A(" + "+".join(["i"] * 3000) + ")": "nested more than 150 deep",
    "A(i) > 0 ? " * 1000 + "A(i)" + ": 0" * 1000: "nested more than 150 deep",
    "A(i) * 1e400": "1e400 is larger than any float64",
    "A(i) + " + "9" * 5000: "a whole number of 5000 digits, which no type has",
    "like(9223372036854775808, i) where i in 0:4": "is no int64: expected -9223372036854775808 to",
    "A(i) + i / 0 where i in 0:4": "'/' of a whole number by 0",
    "A(i % 0) where i in 0:4": "'%' of a whole number by 0",
    "A(i * 9223372036854775807 % 3) where i in 0:3": "which no int64 is",
    "1 where i in 0:9223372036854775807": "more elements of 8 bytes than there are addresses",
    "1 where i in 0:99999999999999999999": "more elements of 8 bytes than there are addresses",
}


@pytest.mark.parametrize("value", HOSTILE, ids=lambda v: v[:20])
def test_values_beyond_all_bounds_are_one_short_message(value):
    arrays = [np.ones(4)] * ("A(" in value)
    with pytest.raises(ExpressionError) as caught:
        irkit.te.op(f"O(i) = {value}", target="cpu")(*arrays)
    assert HOSTILE[value] in str(caught.value)
    message, line, caret = str(caught.value).splitlines()
    assert len(message) < 250
    assert len(line) < 170
    assert line[len(caret) - 1 :][:1].strip()


@pytest.mark.parametrize(("dtype", "number"), [("uint8", 256), ("uint8", -1), ("int8", 200)])
def test_numbers_that_no_element_can_be(dtype, number):
    with pytest.raises(ExpressionError, match=rf"^expression:1:15: {number} is no {dtype}: exp"):
        irkit.te.op(f"O(i) = A(i) + {number}", target="cpu")(np.ones(4, dtype))


@pytest.mark.parametrize("number", ["1e39", "-1e300", "1" + "0" * 39])
def test_numbers_that_would_be_infinite(number):
    with pytest.raises(ExpressionError, match=r"^expression:1:15: .* is larger than any float32"):
        irkit.te.op(f"O(i) = A(i) * {number}", target="cpu")(np.ones(4, np.float32))
    assert irkit.te.op("O(i) = A(i) * 3.4028235e38", target="cpu")(np.ones(1, np.float32)) < np.inf


def test_names_and_parentheses_may_be_long_and_many():
    name = "n" * 10_000
    op = irkit.te.op(f"{name}_(i) = {'(' * 10_000}{name}(i) * 2{')' * 10_000}", target="cpu")
    assert op(np.arange(3.0)).tolist() == [0, 2, 4]


def test_a_derivative_that_is_nested_too_deep_is_refused():
    deep = irkit.te.op("O(i) = " + "A(i) * (" * 140 + "A(i)" + ")" * 140, target="cpu")
    with pytest.raises(irkit.UnsupportedError, match=r"^[^\n]*nested more than 150 deep"):
        irkit.grad(lambda x: deep(x).sum(), target="cpu")(np.ones(3))


@pytest.mark.parametrize("operator", ["+", "*", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8])
def test_a_reduction_over_no_index_is_its_term(operator: str, dtype: type):
    a = np.array([0, 1, 200, 7]).astype(dtype)
    made = irkit.te.op(f"O(i) {operator}=! A(i)", target="cpu")(a)
    assert made.dtype == dtype
    np.testing.assert_array_equal(made, a)
