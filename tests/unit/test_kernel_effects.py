"""What kernels read and write is inferred from typed code, and is no less than their machine code does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attacking_kernels import A1, CASES, RECURSIVE
from numba import cuda, int64, types
from numba.cuda.extending import intrinsic

from irkit.dags.inference.agreement import check_machine_code, pointers_of
from irkit.dags.inference.machine_effects import machine_effects
from irkit.dags.inference.memory_values import CAPTURED, Root
from irkit.dags.inference.numba_effects import Effects, kernel_effects
from irkit.dags.inference.typed_code import argument_types, machine_code
from irkit.errors import InternalError, UnsupportedError


def words(effects: Effects, types: tuple[Any, ...]) -> tuple[str, ...]:
    """As `CASES` writes them."""
    found: dict[Root, str] = {}
    pointers, _ = pointers_of(types)
    for root in pointers.values():
        found[root] = "r" * (root in effects.reads) + "w" * (root in effects.writes)
    mine = [[word for root, word in found.items() if root.number == n] for n in range(len(types))]
    return tuple("/".join(each) for each in mine)


@pytest.mark.parametrize(
    ("kernel", "types", "expected"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_effects_of_kernels(kernel: Any, types: tuple[Any, ...], expected: tuple[str, ...]) -> None:
    effects = kernel_effects(kernel, types)
    assert words(effects, types) == expected
    ptx = machine_code(kernel, types)
    check_machine_code(kernel.py_func.__name__, types, effects, ptx)


@pytest.mark.parametrize(
    ("kernel", "types", "expected"), CASES[::6], ids=lambda v: getattr(v, "__name__", "")
)
def test_machine_code_is_a_judge(
    kernel: Any, types: tuple[Any, ...], expected: tuple[str, ...]
) -> None:
    """Were a write not inferred, the machine code would tell."""
    effects = kernel_effects(kernel, types)
    ptx = machine_code(kernel, types)
    if not effects.writes:
        return
    effects.writes.clear()
    with pytest.raises(InternalError, match="its machine code may write argument"):
        check_machine_code("k", types, effects, ptx)


def test_recursion_is_the_worst_that_may_be() -> None:
    kernel, types = RECURSIVE
    effects = kernel_effects(kernel, types)
    assert words(effects, types) == ("rw", "w", "")


class OnDevice:
    """An array that lies on a device, as far as typing looks."""

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (8,), "typestr": "<f4", "data": (address, False), "version": 3, "strides": None,
        }  # fmt: skip


TABLE = OnDevice(4096)
HOST_TABLE = np.arange(4, dtype=np.float32)


@cuda.jit
def writes_a_global(x):
    TABLE[0] = x[0] + HOST_TABLE[1]


def test_device_arrays_that_code_names_are_found() -> None:
    effects = kernel_effects(writes_a_global, (A1,))
    root = Root(CAPTURED, (id(TABLE),))
    assert effects.writes == {root}
    assert effects.captured == {id(TABLE): TABLE}
    check_machine_code("k", (A1,), effects, machine_code(writes_a_global, (A1,)))


@intrinsic
def store_at(typing_context, address, value):
    def build(context, builder, signature, args):
        from llvmlite import ir

        pointer = builder.inttoptr(args[0], ir.PointerType(ir.DoubleType()))
        builder.store(args[1], pointer)
        return context.get_dummy_value()

    return types.void(types.int64, types.float64), build


@intrinsic
def first_of(typing_context, array):
    """Something that no table knows."""

    def build(context, builder, signature, args):
        from numba.cuda.np import arrayobj

        made = arrayobj.make_array(signature.args[0])(context, builder, args[0])
        return builder.load(made.data)

    return array.dtype(array), build


@cuda.jit
def stores_at_a_number(address, x):
    store_at(address, 1.0)
    x[0] = 1


@cuda.jit
def calls_the_unknown(x, y):
    y[0] = first_of(x)


def test_addresses_made_of_numbers_are_refused() -> None:
    types = (int64, A1)
    effects = kernel_effects(stores_at_a_number, types)
    assert words(effects, types) == ("w",) or effects.writes == {Root(1)}
    with pytest.raises(UnsupportedError, match=r"what it writes cannot be bounded\n  - st"):
        check_machine_code("k", types, effects, machine_code(stores_at_a_number, types))


def test_unknown_functions_do_the_worst() -> None:
    assert words(kernel_effects(calls_the_unknown, (A1, A1)), (A1, A1)) == ("rw", "w")


@cuda.jit
def will_not_compile(x):
    x[0] = x.no_such_thing


def test_what_numba_refuses_is_one_error() -> None:
    with pytest.raises(UnsupportedError, match="kernel 'will_not_compile': Numba refuses it"):
        kernel_effects(will_not_compile, (A1,))


@cuda.jit
def inverts(x, y):
    y[0] = np.linalg.inv(x)


@cuda.jit
def opens_a_file(x, y):
    with open("a") as _:
        y[0] = x[0]


@cuda.jit
def yields(x, y):
    yield x[0]


@pytest.mark.parametrize(
    ("kernel", "types", "words"),
    [
        (
            will_not_compile,
            (A1,),
            "for x: array.*: Unknown attribute 'no_such_thing' of .*, in line ",
        ),
        (
            inverts,
            (A1, A1),
            r"it has no inv\(array.* \(np.linalg.inv\(\) only supported on 2-D arrays",
        ),
        (
            opens_a_file,
            (A1, A1),
            r"Numba refuses it for x: .*, y: .*: The 'with .* is not supported$",
        ),
        (yields, (A1, A1), "kernel 'yields' is a generator"),
    ],
)
def test_what_numba_refuses_is_one_line(kernel: Any, types: Any, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words) as refusal:
        kernel_effects(kernel, types)
    assert len(str(refusal.value).splitlines()) == 1


def test_arrays_of_objects_are_refused_by_argument() -> None:
    arrays = np.zeros(3), np.array([1, 2, 3], object)
    with pytest.raises(
        UnsupportedError, match=r"argument 1: an array of Python objects \(object\)"
    ):
        argument_types(inverts, arrays)


def test_arguments_of_no_type_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="kernel 'will_not_compile', argument 1: "):
        argument_types(will_not_compile, (np.zeros(3), object()))


def test_a_call_in_machine_code_touches_all_that_it_gets() -> None:
    ptx = """
    .visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u64 k_param_2)
    {
      .reg .b64 %rd<9>;
      ld.param.u64 %rd1, [k_param_0];
      ld.param.u64 %rd2, [k_param_1];
      ld.param.u64 %rd5, [k_param_2];
      add.s64 %rd3, %rd1, 8;
      { // callseq 0, 0
      .reg .b32 temp_param_reg;
      .param .b64 param0;
      st.param.b64 [param0+0], %rd3;
      .param .b64 retval0;
      call.uni (retval0), helper, (param0);
      ld.param.b64 %rd4, [retval0+0];
      } // callseq 0
      st.global.v2.f32 [%rd4+16], {%f1, %f2};
      @%p1 ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];
      mov.u64 %SPL, __local_depot0;
      st.local.u64 [%SPL], %rd5;
      ld.local.u64 %rd6, [%SPL];
      red.global.add.f32 [%rd6], %f1;
      ret;
    }
    """
    found = machine_effects(ptx, "k")
    assert (found.reads - {-1}, found.writes - {-1}) == ({0, 1, 2}, {0, 2})
    assert found.unbounded({0, 1, 2}) == []
    assert len(found.unbounded({1})) == 2
    with pytest.raises(ValueError, match="no kernel 'other' in this PTX"):
        machine_effects(ptx, "other")
