"""Functions that several forms have: one name for what is the same, and lowered once in a process."""

import ctypes

import numpy as np
import pytest

import irkit
from irkit.runtime import machine_code
from irkit.runtime.form_functions import functions_of_form
from irkit.runtime.forms import form_of
from irkit.runtime.intrinsics import engine
from irkit.runtime.units import parts_of

HEADER = """\
from numba import float32

from irkit.runtime.intrinsics.cpu import float32p, int64p
from irkit.runtime.intrinsics.engine import cfunc, njit


"""
INLINED = (
    '@njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")\n'
)
CALLED = '@cfunc("void(int64, int64, int64, int64, int64)", error_model="numpy")\n'
FORM = f"""{HEADER}{INLINED}def a_of_unit(i):
    return i * number_slot(0) + number_slot(1)


{INLINED}def b_of_unit(i):
    return i * number_slot(2) + number_slot(3)

{INLINED}def c_of_unit(p0, i):
    return p0[a_of_unit(i)] + p0[b_of_unit(i)] * float32(real_slot(4))

{CALLED}def d_of_unit(task, tasks, rows, scratch, operands):
    # What is done.

    p0 = float32p(int64p(operands)[0])
    p0[number_slot(5)] = c_of_unit(p0, task)
"""
OTHER = FORM.replace("c_of_unit", "e_of_unit").replace("number_slot(5)] =", "number_slot(5)] = 2 *")


@pytest.fixture(autouse=True)
def nothing_known():
    engine.forget_functions()
    yield
    engine.forget_functions()


def names(text):
    found = functions_of_form(text)
    assert found is not None
    return [function.name for function in found.functions]


def test_functions_are_named_by_what_they_say():
    one, other = names(FORM), names(OTHER)
    assert one[:3] == other[:3]
    assert one[3] != other[3]
    assert len({*one, *other}) == 5
    moved = FORM.replace("\n\n\n@", f"\n\n\n{INLINED}def z_of_unit(i):\n    return i\n\n@", 1)
    assert names(moved)[1:4] == one[:3]


def test_functions_of_a_form_that_say_the_same_are_two():
    """Their slots have other numbers."""
    found = functions_of_form(FORM)
    assert found is not None
    first, second, *_ = found.functions
    assert first.name != second.name
    assert list(first.slots.values()) == [0, 1]
    assert list(second.slots.values()) == [2, 3]
    assert sorted(found.slots().values()) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "change",
    [
        ("i * number", "i + number"),
        ("number_slot(1)", "7"),
        ("a_of_unit(i)] +", "a_of_unit(i)] -"),
        ("float32(real_slot(4))", "float32(number_slot(4))"),
        ("numpy", "python"),
        ("from numba import float32\n", "from numba import float32, int64\n"),
    ],
)
def test_another_text_has_another_name(change):
    assert names(FORM.replace(*change, 1))[2] != names(FORM)[2]


@pytest.mark.parametrize(
    "text",
    [
        HEADER,
        FORM.replace(f"{CALLED}", f"table = 5\n\n{CALLED}"),
        FORM.replace("a_of_unit(i):", "b_of_unit(i):", 1),
        FORM.replace("number_slot(1)", "c_of_unit(p0, i)"),
    ],
)
def test_a_text_of_other_statements_is_no_form(text):
    assert functions_of_form(text) is None


def run(text, values, data):
    """The unit of a form, run once."""
    code = machine_code.RKernelCode(machine_code.code_of(machine_code.lower(text), values))
    operands = np.array([data.ctypes.data], dtype=np.int64)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)(code.address)
    call(3, 1, 1, 0, operands.ctypes.data)
    return data


def test_forms_share_functions_and_have_their_own_numbers(monkeypatch):
    compiled = []
    whole = engine._Dispatcher.compile

    def counted(self, signature):
        if not self.overloads:
            compiled.append(self.py_func.__name__)
        return whole(self, signature)

    monkeypatch.setattr(engine._Dispatcher, "compile", counted)
    data = np.arange(16, dtype=np.float32)
    assert run(FORM, (1, 2, 3, 4, 0.5, 9), data.copy())[9] == 5 + 13 * 0.5
    first = [name for name in compiled if name.startswith("f_")]
    assert len(first) == len(set(first)) == 3
    assert run(OTHER, (2, 1, 1, 1, 2.0, 0), data.copy())[0] == 2 * (7 + 4 * 2.0)
    assert [name for name in compiled if name.startswith("f_")] == first
    engine.forget_functions()
    assert run(OTHER, (2, 1, 1, 1, 2.0, 0), data.copy())[0] == 2 * (7 + 4 * 2.0)
    assert len([name for name in compiled if name.startswith("f_")]) == 6


def test_what_is_no_form_is_lowered_as_it_is():
    text = FORM.replace(f"{CALLED}", f"two = 2\n\n{CALLED}").replace("= c_of", "= two * c_of")
    for _ in range(2):
        data = np.arange(16, dtype=np.float32)
        assert run(text, (1, 2, 3, 4, 0.5, 9), data)[9] == 2 * (5 + 13 * 0.5)
    assert not engine._Known.names


def test_what_fails_is_forgotten():
    with pytest.raises(Exception, match="nothing_at_all"):
        machine_code.lower(FORM.replace("float32(real", "nothing_at_all(real"))
    assert not engine._Known.names
    data = np.arange(16, dtype=np.float32)
    assert run(FORM, (1, 2, 3, 4, 0.5, 9), data)[9] == 5 + 13 * 0.5


def test_emitted_rkernels_are_forms_and_nothing_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))

    def f(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        y = np.maximum(x @ w, 0)
        return np.exp(y - y.max(axis=1, keepdims=True)).sum(axis=1)

    x = np.ones((8, 8), dtype=np.float32)
    program = irkit.jit(f, target="cpu")
    program(x, x)
    assert not engine._Known.names
    for unit in parts_of(program.source).units:
        assert functions_of_form(form_of(unit.text, reals=True).text) is not None
