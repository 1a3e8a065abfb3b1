"""What `why_illegal` admits binds, and computes what the body means; what it refuses has a reason."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false, reportCallIssue=false

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import cpu_emulator
import cuda_emulator
import numpy as np
import pytest
from family_programs import NAMES, NAMES_FOR, ROWS, Case, cases
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import SSAValue

from irkit.dialects.access_boxes import has_batch, operand_boxes
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array
from irkit.passes.task.partition_rtasks import Partition
from irkit.rkernels import families, registry
from irkit.rkernels.bind import bind, parameters_of
from irkit.rkernels.binding.binder import Binding
from irkit.rkernels.legality import root_of, target_of, why_illegal
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.templates import specialise, template_source
from irkit.schedule.devices import device as find_device
from irkit.schedule.model import VDevice


def small(device: str, threads: int = 64) -> VDevice:
    """A device whose blocks are small enough to be run thread by thread."""
    known = find_device(device)
    return dataclasses.replace(known, threads=threads) if known.kind == "cuda" else known


def flat(array: Any) -> Any:
    """As it lies in memory: booleans are bytes."""
    array = np.ascontiguousarray(array)
    return array.view(np.uint8) if array.dtype == np.bool_ else array


class WrittenOnce(np.ndarray):
    """An array that refuses a second value for an element."""

    written: set[int]

    @staticmethod
    def of(array: Any) -> Any:
        """A copy of `array` to be written once."""
        made = array.copy().view(WrittenOnce)
        made.written = set()
        return made

    def __array_finalize__(self, source: Any) -> None:
        self.written = getattr(source, "written", set())

    def __setitem__(self, index: Any, value: Any) -> None:
        assert index not in self.written, f"element {index} is written again"
        self.written.add(index)
        super().__setitem__(index, value)


def compute(case: Case, device: VDevice) -> None:
    """Bind, and run each rTask alone, where what it may not read is poisoned: it writes what the body means
    to its own part, each element once if it does not say otherwise, and nothing anywhere else."""
    op = case.op
    assert op.rkernel is not None
    rkernel = registry.find(target_of(device), op.rkernel.data)
    binding = bind(op, root_of(op), rkernel, device.threads)
    reads, writes = operand_boxes(op)
    covered = [np.zeros(w.shape, bool) for w in case.want]
    for task in range(op.tasks):
        operands = zip(case.arrays, op.body.block.args, reads, strict=True)
        inputs = [poisoned(a, part(v, boxes, task)) for a, v, boxes in operands]
        fresh = [np.full_like(flat(w), 77) for w in case.want]
        results = fresh if rkernel.stores_again else [WrittenOnce.of(a) for a in fresh]
        if device.kind == "cuda":
            emulate(rkernel, binding, [*inputs, *results], task, op.tasks, device.threads)
        else:
            cpu_emulator.run(rkernel, binding, [*inputs, *results], task, op.tasks, ROWS)
        arrays = [np.asarray(r) for r in results]
        for number, (got, want, done) in enumerate(zip(arrays, case.want, covered, strict=True)):
            own = part(op.terminator.values[number], writes[number], task)
            done[own] = True
            np.testing.assert_allclose(
                got[own], flat(want)[own], rtol=1e-4, atol=1e-5, err_msg=str(op)
            )
            got[own] = 77
            assert (got == 77).all(), f"rTask {task} writes outside of its part: {op}"
    assert all(done.all() for done in covered)


def part(value: SSAValue, boxes: Any, task: int) -> tuple[slice, ...]:
    """An rTask's box as an index; of the batch it is a share of the rows."""
    found = [slice(low, high) for low, high in boxes[task].tolist()]
    if has_batch(value):
        shares = int(boxes[:, 0, 1].max())
        found[0] = slice(*(ROWS * s // shares for s in boxes[task, 0].tolist()))
    return tuple(found)


def poisoned(array: Any, own: tuple[slice, ...]) -> Any:
    """A copy of which only a part is what it was."""
    array = flat(array)
    made = np.full_like(array, np.nan if array.dtype.kind == "f" else 99)
    made[own] = array[own]
    return made


def emulate(
    rkernel: RKernel, binding: Binding, arrays: list[Any], task: int, tasks: int, threads: int
) -> None:
    body = specialise(template_source(rkernel), rkernel.function, "kernel", binding.names)
    text = "\n".join([*binding.functions, body])
    cuda_emulator.run_text(
        text, "kernel", arrays, tasks, ROWS, threads, binding.scratch_bytes, task
    )


@pytest.mark.parametrize(("name", "device"), [(n, d) for d in NAMES_FOR for n in NAMES_FOR[d]])
def test_what_partitioning_offers_is_legal(name: str, device: str) -> None:
    made = find_device(device)
    for case in CASES[name, device]:
        assert why_illegal(case.op, made) is None
        offered = Partition(case.module, made).alternatives(case.op.clone())
        times = [math.ceil(a.tasks / made.veus) * a.cost_ns for a in offered]
        assert times == sorted(times)
        assert Partition(case.module, made).fastest_ns(case.op.clone()) == times[0]
        assert [a.tasks for a in offered] == sorted((a.tasks for a in offered), reverse=True)
        for alternative in offered:
            other = case.op.clone()
            other.choose(alternative)
            other.verify()
            assert why_illegal(other, made) is None


def set_parameters(op: ROperatorOp, values: dict[str, int]) -> None:
    op.parameters = DictionaryAttr({k: IntegerAttr(v, i64) for k, v in values.items()})


def all_of(target: str) -> list[RKernel]:
    """Every rKernel of a target, whatever it takes."""
    return registry.registered(target)


def literals(rkernel: RKernel, op: ROperatorOp) -> dict[str, int]:
    """Its parameters for the root of `op`; those of no root where it does not take that."""
    root = root_of(op)
    if families.find(rkernel.family).refuses(root) is None and rkernel.legal(root):
        return dict(rkernel.literals(root))
    return {} if callable(rkernel.parameters) else dict(rkernel.parameters)


VALUES = (-1, 0, 1, 2, 3, 4, 8, 16, 32, 48, 64, 100, 4096)


def mutate(op: ROperatorOp, target: str, draw: Any) -> None:
    """Give `op` some rKernel, grid and parameters, most often ones that fit each other."""
    root = root_of(op)
    offered = registry.candidates(target, root)
    rkernel = draw(
        st.sampled_from(offered) | st.sampled_from(offered) | st.sampled_from(all_of(target))
    )
    op.rkernel = StringAttr(rkernel.name)
    parts = [st.just(1) | st.integers(1, 4) for _ in root.parallel]
    op.grid = int_array(draw(st.tuples(*parts)))
    family = families.find(rkernel.family)
    if family.refuses(root) is None and draw(st.booleans()):
        op.grid = int_array(family.grid(root, draw(st.integers(1, 7))))
    values = literals(rkernel, op)
    for name in values:
        values[name] = draw(st.just(values[name]) | st.sampled_from(VALUES))
    set_parameters(op, values)
    set_needs(op, rkernel, draw)


def set_needs(op: ROperatorOp, rkernel: RKernel, draw: Any = None) -> None:
    """Say on `op` what its rKernel needs; what `draw` says, now and then."""
    root = root_of(op)
    op.scratch, op.fastmath = None, rkernel.fastmath
    takes = families.find(rkernel.family).refuses(root) is None and rkernel.legal(root)
    # Of parameters that it refuses an rKernel need not know what they need.
    if takes and rkernel.refuses_parameters(root, parameters_of(op)) is None:
        op.scratch = IntegerAttr(rkernel.scratch(root, parameters_of(op)), i64)
    if draw is not None and draw(st.integers(0, 9)) == 0:
        op.scratch = IntegerAttr(draw(st.sampled_from(VALUES)), i64)
    if draw is not None and draw(st.integers(0, 9)) == 0:
        op.fastmath = FastMathFlagsAttr(draw(st.sampled_from(["none", "fast"])))


CASES = {(n, d): cases(n, d) for d, names in NAMES_FOR.items() for n in names}


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.data())
def test_what_is_admitted_computes_what_the_body_means_on_a_cpu(name: str, data: Any) -> None:
    check_mutant(name, "test4", data.draw)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.sampled_from(NAMES_FOR["h200"]), st.data())
def test_what_is_admitted_computes_what_the_body_means_on_a_gpu(name: str, data: Any) -> None:
    check_mutant(name, "h200", data.draw)


def check_mutant(name: str, device: str, draw: Any) -> bool:
    """Whether it was admitted; then it was computed too."""
    case = draw(st.sampled_from(CASES[name, device]))
    saved = dict(case.op.properties)
    try:
        mutate(case.op, target_of(find_device(device)), draw)
        rkernel = registry.find(target_of(find_device(device)), case.op.rkernel.data)
        here = small(device, rkernel.threads or 64)
        admitted = why_illegal(case.op, here) is None
        if admitted:
            compute(case, here)
        return admitted
    finally:
        case.op.properties.clear()
        case.op.properties.update(saved)


@pytest.mark.parametrize("device", ["test4", "h200"])
def test_an_rkernel_takes_no_root_of_another_family(device: str) -> None:
    target = target_of(find_device(device))
    for name, rkernel in itertools.product(NAMES_FOR[device], all_of(target)):
        (case, *_) = CASES[name, device]
        root = root_of(case.op)
        saved = dict(case.op.properties)
        case.op.rkernel = StringAttr(rkernel.name)
        set_parameters(case.op, literals(rkernel, case.op))
        set_needs(case.op, rkernel)
        case.op.grid = int_array([1] * len(root.parallel))
        reason = why_illegal(case.op, find_device(device))
        offered = rkernel in registry.candidates(target, root)
        assert offered or reason is not None, (name, rkernel.name)
        case.op.properties.clear()
        case.op.properties.update(saved)


TILE = {"ACROSS": 1, "LANES": 16, "TILE": 4}
REFUSED = [
    ("gemm", {"rkernel": "softmax.rows", "parameters": {}}, "its root is no softmax"),
    ("softmax", {"rkernel": "gemm.strip", "parameters": {"STRIP": 64}}, "is of family 'softmax', no gemm"),
    ("gemm", {"rkernel": "gemm.wide"}, "rKernel 'gemm.wide' for cpu; there are"),
    ("gemm", {"parameters": {**TILE, "NC": 4096}}, "parameter NC cannot be 4096"),
    ("gemm", {"parameters": {**TILE, "NC": 32}}, "needs 2048 bytes of scratch, it has 1024"),
    ("gemm", {"scratch": IntegerAttr(4096, i64)}, "needs 1024 bytes of scratch, it has 4096"),
    ("gemm", {"fastmath": None}, "computes with #arith.fastmath<reassoc,contract>, it grants"),
    ("softmax", {"fastmath": FastMathFlagsAttr("fast")}, "computes with #arith.fastmath<none>"),
    ("gemv", {"vector_bytes": IntegerAttr(16, i64)}, "vectors of 16 bytes of what no append"),
    ("gemv", {"residents": int_array([1])}, "residents [1]: not what its rKernel expects"),
    ("gemm", {"parameters": {**TILE, "NC": 20}}, "parameter NC cannot be 20"),
    ("gemm", {"parameters": {}}, "its parameters are ACROSS, LANES, NC, TILE, got none"),
    ("gemm", {"parameters": {"NC": 16, "KC": 1}}, "its parameters are ACROSS, LANES, NC, TILE, got KC, NC"),
    ("gemm", {"grid": [3]}, "its root has 2 parallel dimensions"),
    ("gemm", {"grid": [10, 1]}, "dimension 0 has 9 elements"),
    ("map", {"grid": [2, 2, 1]}, "must be cut into single elements"),
    ("softmax", {"grid": [1, 2]}, "a row stays whole"),
    ("layer norm", {"grid": [1, 2]}, "a row stays whole"),
    ("layer norm of rows", {"rkernel": "softmax.rows", "parameters": {}}, "its root is no softmax"),
    ("softmax", {"rkernel": "layer_norm.buffered", "parameters": {}}, "its root is no layer normalisation"),
    ("attention", {"grid": [1, 1, 3]}, "a row stays whole"),
    ("softmax of rows", {"grid": [2, 3]}, "cut along the batch alone"),
    ("perfect forest", {"grid": [1, 2]}, "cut along the batch alone"),
    ("gemv", {"rkernel": "gemv.rows", "parameters": {}, "grid": [1, 13]}, "dimension 1 has 12"),
    ("gemm by k", {"rkernel": "gemv.rows", "parameters": {}, "grid": [2, 1]}, "only dimension 1 can be cut"),
    ("gemm of integers", {"rkernel": "product.blocked", "parameters": {"NC": 16}}, "its root is no product"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "reason"), REFUSED)
def test_each_refusal_has_its_reason(name: str, given: dict[str, Any], reason: str) -> None:
    ((case, *_), device) = cases(name, "test4"), find_device("test4")
    assert why_illegal(case.op, device) is None
    if "rkernel" in given:
        case.op.rkernel = StringAttr(given["rkernel"])
    for name in {"scratch", "fastmath", "vector_bytes", "residents"} & set(given):
        setattr(case.op, name, given[name])
    if "grid" in given:
        case.op.grid = int_array(given["grid"])
    if "parameters" in given:
        set_parameters(case.op, given["parameters"])
    assert reason in str(why_illegal(case.op, device))


def test_scratch_follows_from_the_parameters() -> None:
    (case,) = cases("gemm", "test4")
    rkernel, root = registry.find("cpu", "product.blocked"), root_of(case.op)
    sizes = [rkernel.scratch(root, {**TILE, "NC": n}) for n in (16, 32, 64)]
    assert sizes == [(12 + 4) * n * 4 for n in (16, 32, 64)]


def test_an_rkernel_runs_in_blocks_of_its_own_size() -> None:
    (case,) = cases("long sum", "h200")
    case.op.rkernel = StringAttr("reduce.block")
    set_needs(case.op, registry.find("cuda", "reduce.block"))
    assert why_illegal(case.op, find_device("h200")) is None
    reason = why_illegal(case.op, small("h200", 128))
    assert reason == "rKernel 'reduce.block' runs in blocks of 256 threads, h200 has 128"
    case.op.rkernel = StringAttr("reduce.warp")
    set_needs(case.op, registry.find("cuda", "reduce.warp"))
    assert why_illegal(case.op, small("h200", 128)) is None
    assert "two whole warps" in str(why_illegal(case.op, small("h200", 48)))


def test_no_shuffle_of_what_it_cannot_move() -> None:
    (case,) = cases("argmax of bytes", "h200")
    assert case.op.rkernel == StringAttr("argmax.thread")
    case.op.rkernel = StringAttr("argmax.warp")
    set_needs(case.op, registry.find("cuda", "argmax.warp"))
    reason = why_illegal(case.op, find_device("h200"))
    assert reason == "rKernel 'argmax.warp' does not take this root"


@pytest.mark.parametrize("name", ["least of bytes", "max of words", "max of 16 bits"])
def test_integers_are_shuffled_as_longer_ones(name: str) -> None:
    (case,) = cases(name, "h200")
    case.op.rkernel = StringAttr("reduce.warp")
    set_parameters(case.op, {})
    set_needs(case.op, registry.find("cuda", "reduce.warp"))
    assert why_illegal(case.op, small("h200", 64)) is None
    compute(case, small("h200", 64))


def test_partitioning_offers_an_rkernel_of_ones_own_to_its_blocks_alone() -> None:
    own = RKernel("map", "mine", "cuda", "irkit.rkernels.cuda.map", "map_elements",
                  efficiency=1000.0, threads=128)  # fmt: skip
    try:
        registry.register(own)
        for threads, wanted in ((128, "map.mine"), (256, "map.elements")):
            (case,) = cases("map", "h200")
            Partition(case.module, small("h200", threads)).run()
            assert {a.rkernel for a in case.op.alternatives.data} == {wanted}
    finally:
        known = registry._REGISTERED["cuda", "map"]
        known[:] = [k for k in known if k.variant != "mine"]
