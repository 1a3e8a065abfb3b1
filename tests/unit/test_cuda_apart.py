"""rKernels that stand apart from the walkers: texts of PTX joined, and what the assembler says of them."""

import importlib.util
import re

import pytest

from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.runtime.cuda import compiling, ptx
from irkit.runtime.cuda.apart import (
    entered,
    joined,
    stands_apart,
    taken_in,
    with_loops_once,
    with_own_thread,
)
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.cuda.linking import nvvm_ptx

HEAD = "//\n// Generated\n//\n\n.version 8.5\n.target sm_90a\n.address_size 64\n\n"
SHARED = ".extern .shared .align 128 .b8 irkit_shared[];\n"
FUNCTION = (
    HEAD
    + """.func  (.param .b32 func_retval0) helper
(
\t.param .b32 helper_param_0
)
;
"""
    + SHARED
    + """.global .align 4 .b8 table[24] = {1, 2, 3};
.common .global .align 8 .u64 environment;
.visible .func  (.param .b64 func_retval0) NAME(
\t.param .b64 NAME_param_0
)
{
\tmov.u64 %rd1, table;
\tcall.uni (retval0), helper, (param0);
\tret;
}
.func  (.param .b32 func_retval0) helper(
\t.param .b32 helper_param_0
)
{
\tret;
}
"""
)
WALKERS = (
    HEAD
    + """.extern .func  (.param .b64 func_retval0) one
(
\t.param .b64 one_param_0
)
;
.extern .func  (.param .b64 func_retval0) vprintf
(
\t.param .b64 vprintf_param_0
)
;
"""
    + SHARED
    + ".visible .entry persistent(\n)\n{\n\tret;\n}\n"
)


def test_joined_texts_share_nothing_but_what_they_call_and_shared_memory():
    texts = [FUNCTION.replace("NAME", "one"), FUNCTION.replace("NAME", "two") + "// other\n"]
    found = joined(WALKERS, texts, ["one", "two"])
    assert found.count(".version") == 1
    assert found.count(SHARED) == 1
    assert ".extern .func  (.param .b64 func_retval0) one" not in found
    assert ".extern .func  (.param .b64 func_retval0) vprintf" in found
    for name in ("helper", "table", "environment"):
        names = set(re.findall(rf"\b{name}_[0-9a-f]{{12}}\b", found))
        assert len(names) == 2
        assert not re.search(rf"(?<![\w]){name}(?!\w)", found)
    # What is referred to goes by the name that it is defined by, text for text.
    for marked in re.findall(r"table_[0-9a-f]{12}", found):
        assert found.count(marked) == 2
    assert found.index(" one(") < found.index(".entry persistent")


def test_walkers_that_call_nothing_stay_as_they_are():
    assert joined(WALKERS, [], []) == WALKERS


def test_functions_are_there_for_others_by_name():
    text = 'define linkonce_odr i8* @"a_1"(i64 %x) {\n}\ndefine linkonce_odr i32 @"a_12"(i64 %x) {\n}\n'
    assert entered([text], ["a_1"]) == [text.replace('linkonce_odr i8* @"a_1"', 'i8* @"a_1"')]


def test_functions_by_name_and_the_dispatch_become_part_of_what_calls_them():
    kept = 'define linkonce_odr i32 @"a_12"(i64 %x) {\n}\ndeclare i8* @"a_1"(i64)\n'
    known = 'define linkonce_odr i8* @"a_1"(i64 %x) {\n}\n'
    dispatch = 'define linkonce_odr i32 @"_ZN13irkit_emitted17run_task_residentB2v9x"(i8** %r)\n'
    found = taken_in([kept + known, dispatch], ["a_1"])
    assert found == [
        kept + known.replace(" %x) {", " %x) alwaysinline {"),
        dispatch.replace("%r)", "%r) alwaysinline"),
    ]
    assert taken_in([kept + known], []) == [kept + known]


@pytest.mark.parametrize(("threads", "most"), [(256, 255), (128, 127), (96, 127), (1024, 1023)])
def test_the_number_of_the_thread_is_read_where_an_rkernel_runs(threads, most):
    call = 'call i32 @"llvm.nvvm.read.ptx.sreg.tid.x"()'
    kept = 'declare i32 @"llvm.nvvm.read.ptx.sreg.tid.x"()\n'
    found = with_own_thread([f'{kept}  %".7" = {call}\n  %t = {call}\n'], threads)
    read = 'call i32 asm "mov.u32 $0, %tid.x;", "=r"() nounwind readnone'
    assert found == [
        f'{kept}  %".7.read" = {read}\n  %".7" = and i32 %".7.read", {most}\n'
        f"  %t.read = {read}\n  %t = and i32 %t.read, {most}\n"
    ]


DATA = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128"
    "-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
LOOP = """
target triple = "nvptx64-nvidia-cuda"
target datalayout = "DATA"
define void @sums(float* %p, float* %q, i64 %n) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %at = getelementptr float, float* %p, i64 %i
  %x = load float, float* %at
  %more = fadd float %sum, %x
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %end
end:
  %found = phi float [ 0.0, %entry ], [ %more, %loop ]
  store float %found, float* %q
  ret void
}
!nvvmir.version = !{!0}
!0 = !{i32 2, i32 0, i32 3, i32 2}
""".replace("DATA", DATA)


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="needs numba-cuda")
def test_a_loop_of_unknown_trips_has_one_body():
    texts = [LOOP, *with_loops_once([LOOP])]
    copies = [len(re.findall(r"add(\.rn)?\.f32", nvvm_ptx([t], "sm_90a"))) for t in texts]
    assert copies[0] > 1
    assert copies[1] == 1


def test_loops_keep_what_is_said_of_them():
    said = "  br label %a, !llvm.loop !3\n"
    (found,) = with_loops_once([f"{said}  br label %b\n!3 = distinct !{{!3}}\n"])
    assert found == (
        f"{said}  br label %b, !llvm.loop !5\n!3 = distinct !{{!3}}\n\n"
        '!4 = !{!"llvm.loop.unroll.runtime.disable"}\n!5 = distinct !{!5, !4}\n'
    )


def test_what_kernels_call_is_held_to_what_they_are():
    assert ptx.forbidden_forms(joined(WALKERS, [FUNCTION.replace("NAME", "one")], ["one"])) == []
    text = FUNCTION.replace("NAME", "one").replace("mov.u64", "ld.global.nc.u64")
    assert ptx.forbidden_forms(joined(WALKERS, [text], ["one"])) == [
        "what kernels call: ld.global.nc may miss what another vEU wrote"
    ]


def test_what_multiplies_by_warp_groups_stands_apart():
    assert stands_apart(["define", 'asm "wgmma.mma_async.sync"'])
    assert not stands_apart(["define", 'asm "mma.sync"'])


PRODUCT = """
func.func @main(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %0 = "graph.matmul"(%x, %w) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = "graph.relu"(%0) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  func.return %1 : tensor<1024x1024xf32>
}
"""


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="needs numba-cuda")
def test_walkers_run_products_of_warp_groups_side_by_side(tmp_path, monkeypatch):
    """No kernel of the module has its `wgmma` one after another, which the assembler would say."""
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "net.mlir"
    path.write_text(PRODUCT)
    artifact = build_artifact(read_model(path, "float32"), "h200", False)
    _, facts = read_facts(artifact.source)
    made = compiling.compile_module_with_ptx(
        artifact.source, facts.entries, facts.threads, "sm_90a"
    )
    functions = re.findall(r"^\.visible \.func[^\n]* (irkit_\w+)\(", made.ptx, re.MULTILINE)
    assert functions
    body = made.ptx.split(".visible .entry persistent")[1].split(".entry")[0]
    assert "wgmma" not in body
    defined = re.findall(r"^[^\n/]*\.func[^;{]*? ([\w$]+)\([^;{]*\{", made.ptx, re.MULTILINE)
    assert sorted(defined) == sorted(functions), "all others are part of the kernel that walks"
    assert "C75" not in made.log
    assert set(made.resources()) == set(facts.entries)
