"""rKernels whose instructions stand where walkers call them: texts of PTX, and IR that knows of addresses."""

import importlib.util
import re

import pytest

from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.runtime.cuda import compiling, linking, ptx
from irkit.runtime.cuda.assembling import assemble
from irkit.runtime.cuda.embedded import embeddable, embedded, with_aligned
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.cuda.unit_code import aligned
from irkit.runtime.units import Parts, Unit

HEAD = "//\n// Generated\n//\n\n.version 8.5\n.target sm_90a\n.address_size 64\n\n"
SHARED = ".extern .shared .align 128 .b8 irkit_shared[];\n"
FUNCTION = (
    HEAD
    + SHARED
    + """.global .align 4 .b8 table[24] = {1, 2, 3};

.visible .func  (.param .b64 func_retval0) NAME(
\t.param .b64 NAME_param_0,
\t.param .b64 NAME_param_1
)
{
\t.reg .pred \t%p<2>;
\t.reg .b32 \t%r<3>;
\t.reg .b64 \t%rd<4>;

\tld.param.u64 \t%rd1, [NAME_param_1];
\tld.param.u32 \t%r1, [NAME_param_0];
\tsetp.eq.s32 \t%p1, %r1, 0;
\t@%p1 bra \t$L__BB0_1;
\tst.global.u32 \t[%rd1], %r1;
$L__BB0_1:
\tmov.u64 \t%rd2, table;
\tld.global.u32 \t%r2, [%rd2];
\tst.shared.u32 \t[irkit_shared+4], %r2;
\tmov.u64 \t%rd3, 0;
\tst.param.b64 \t[func_retval0+0], %rd3;
\tret;

}
"""
)
CALL = """\t{ // callseq NUMBER, 0
\t.reg .b32 temp_param_reg;
\t.param .b64 param0;
\tst.param.b64 \t[param0+0], %rd1;
\t.param .b64 param1;
\tst.param.b64 \t[param1+0], 16;
\t.param .b64 retval0;
\tcall.uni (retval0), \n\tNAME, \n\t(
\tparam0, \n\tparam1
\t);
\tld.param.b64 \t%rd2, [retval0+0];
\t} // callseq NUMBER
"""
DECLARED = """.extern .func  (.param .b64 func_retval0) NAME
(
\t.param .b64 NAME_param_0,
\t.param .b64 NAME_param_1
)
;
"""


def walkers(*called):
    """A kernel that calls functions one after another."""
    declared = "".join(DECLARED.replace("NAME", name) for name in dict.fromkeys(called))
    calls = "".join(
        CALL.replace("NUMBER", str(n)).replace("NAME", name) for n, name in enumerate(called)
    )
    return (
        f"{HEAD}{declared}{SHARED}.visible .entry persistent(\n\t.param .u64 persistent_param_0\n)\n"
        "{\n\t.reg .b64 \t%rd<3>;\n\tld.param.u64 \t%rd1, [persistent_param_0];\n"
        f"\tst.shared.u64 \t[irkit_shared], %rd1;\n{calls}\tret;\n}}\n"
    )


def blocks(*names):
    return [embeddable(FUNCTION.replace("NAME", name), [name]) for name in names]


def test_instructions_stand_in_the_place_of_each_call():
    found = embedded(walkers("one", "two", "one"), blocks("one", "two"))
    assert "call" not in found
    assert ".func" not in found
    assert found.count(".version") == found.count(SHARED) == 1
    assert found.count("setp.eq.s32") == 3
    labels = re.findall(r"^(\$\w+):", found, re.MULTILINE)
    assert len(labels) == len(set(labels)) == 6
    assert set(re.findall(r"\bbra(?:\.uni)? \t(\$\w+);", found)) == set(labels)
    # What a text defines beside its function has a name of its own, where it is defined and where it is read.
    tables = re.findall(r"\btable_\w+", found)
    assert len(set(tables)) == 2
    assert len(tables) == 2 + 3
    assert ptx.forbidden_forms(found) == []


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="needs nvJitLink")
def test_the_assembler_takes_registers_of_blocks_for_their_own():
    _, log = assemble(embedded(walkers("one", "two"), blocks("one", "two")), "sm_90a")
    assert "Compiling entry function 'persistent'" in log


def test_arguments_are_read_before_the_blocks_own_registers_hide_theirs():
    found = embedded(walkers("one"), blocks("one"))
    given = found.index("mov.b64 \t%given0, %rd1;")
    assert found.index("mov.b64 \t%given1, 16;") < found.index(".reg .b64 \t%rd<4>;")
    assert given < found.index("cvt.u32.u64 \t%r1, %given0;")
    assert found.index("mov.b64 \t%made, %rd3;") < found.index("mov.b64 \t%rd2, %made;")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\tret;", "\tcall.uni helper, ();\n\tret;"),
        (".param .b64 NAME_param_1\n", ".param .b32 NAME_param_1\n"),
        ("[NAME_param_1]", "[NAME_param_1+4]"),
        ("ld.param.u32", "ld.param.v2.u32"),
        (".global .align 4", ".func other(\n)\n{\n\tret;\n}\n.global .align 4"),
    ],
)
def test_what_is_no_plain_function_is_not_embedded(old, new):
    text = FUNCTION.replace(old, new, 1)
    assert text != FUNCTION
    assert embeddable(text.replace("NAME", "one"), ["one"]) is None


def test_all_functions_of_a_unit_are_embedded_or_none():
    text = FUNCTION.replace("NAME", "one")
    assert embeddable(text, ["one", "two"]) is None
    assert embeddable(text, []) is None


def test_calls_that_are_written_otherwise_are_not_replaced():
    text = walkers("one").replace("call.uni", "call")
    assert embedded(text, blocks("one")) is None
    assert embedded(text, []) == text


def test_other_calls_stay():
    found = embedded(walkers("one", "apart"), blocks("one"))
    assert DECLARED.replace("NAME", "apart") in found
    assert CALL.replace("NAME", "apart").replace("NUMBER", "1") in found


def test_functions_know_which_addresses_are_multiples_of_16():
    head = 'define linkonce_odr i8* @"a_1"(i64 %"arg.task", float* %"arg.p0", i16* %"arg.p1") {\n'
    kept = 'define linkonce_odr i8* @"a_12"(i64 %x, float* %y)\n  call i8* @"a_1"(i64 %x)\n'
    (found,) = with_aligned([head + kept], {"a_1": (False, True)})
    assert found == head.replace("i16* %", "i16* align 16 %") + kept
    assert with_aligned([head], {}) == [head]


def test_callers_say_which_addresses_are_multiples_of_16():
    calls = (
        "    one(task, tasks, rows, top - 128, f32p(addresses[0]), f32p(addresses[1] & -16))\n",
        "    one(block_index(), block_count(), rows, 0, f32p(a0 & -16), f32p(a1 & -16))\n",
    )
    units = (Unit("s", "text", {"one": "first", "helper": "second"}),)
    (flags,) = aligned(Parts("", units, "".join(calls))).values()
    assert flags == (False, True)


NETWORK = """
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = "graph.relu"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = "graph.softmax"(%w) <{axis = 1 : i64}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
"""


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="needs numba-cuda")
def test_walkers_take_what_they_take_where_nvvm_inlines(tmp_path, monkeypatch):
    """Registers within a few, stack and spills as they are; no function is called either way."""
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "net.mlir"
    path.write_text(NETWORK)
    source = build_artifact(read_model(path, "float32"), "h200", False).source
    _, facts = read_facts(source)

    def made():
        found = compiling.compile_module_with_ptx(source, facts.entries, facts.threads, "sm_90a")
        body = ptx.functions(found.ptx)["persistent"]
        return found.resources()["persistent"], body

    put, body = made()
    assert "$embedded_" in body
    assert not re.search(r"\bcall\b", body)
    monkeypatch.setattr(linking, "embeddable", lambda ptx, names: None)
    inlined, body = made()
    assert "$embedded_" not in body
    assert abs(put.pop("registers") - inlined.pop("registers")) <= 8
    assert put == inlined
