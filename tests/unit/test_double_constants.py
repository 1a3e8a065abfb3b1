"""Doubles of PTX are read from constant memory, and an assembler takes them as they were."""

from __future__ import annotations

import re
import struct

import pytest

from irkit.runtime.cuda.assembling import assemble
from irkit.runtime.cuda.double_constants import in_constant_memory

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n\n"


def entry(body: str, name: str = "f") -> str:
    return f""".visible .entry {name}(
	.param .u64 {name}_param_0
)
.maxntid 256, 1, 1
.minnctapersm 1
{{
	.reg .pred 	%p<3>;
	.reg .f64 	%fd<9>;
	.reg .b64 	%rd<3>;

	ld.param.u64 	%rd1, [{name}_param_0];
	ld.global.f64 	%fd1, [%rd1];
{body}
	st.global.f64 	[%rd1], %fd2;
	ret;
}}
"""


PI, E = "0d400921FB54442D18", "0d4005BF0A8B145769"


def test_each_number_is_there_once() -> None:
    found = in_constant_memory(
        HEAD
        + entry(f"\tfma.rn.f64 \t%fd2, %fd1, {PI}, {E};\n\tadd.f64 \t%fd2, %fd2, {PI};")
        + entry(f"\tmul.f64 \t%fd2, %fd1, {E};", "g")
    )
    assert f"irkit_doubles[2] = {{{PI}, {E}}};" in found
    assert found.count(PI) == found.count(E) == 1
    assert (
        found.count(".reg .f64 %irkit_double<3>;")
        == found.count(".reg .f64 %irkit_double<1>;")
        == 1
    )
    assert (
        len(re.findall(r"ld\.const\.f64 %irkit_double\d, \[irkit_doubles\+(?:0|8)\];", found)) == 4
    )
    assemble(found, "sm_80")


def test_what_fits_into_an_instruction_stays() -> None:
    text = HEAD + entry("\tfma.rn.f64 \t%fd2, %fd1, 0d3FE0000000000000, 0d4000000000000000;")
    assert in_constant_memory(text) == text


def test_what_is_done_under_a_condition_and_compared() -> None:
    found = in_constant_memory(
        HEAD
        + entry(
            f"\tsetp.gt.f64 \t%p1, %fd1, {PI};\n\tmov.f64 \t%fd2, {E};\n@%p1 add.f64 \t%fd2, %fd1, {PI};"
        )
    )
    assert found.count(PI) == 1
    assert "@%p1 add.f64 \t%fd2, %fd1, %irkit_double2;" in found
    assemble(found, "sm_80")


@pytest.mark.parametrize("value", [1 / 3, -1e-310, 1.7976931348623157e308, float("nan")])
def test_bits_stay(value: float) -> None:
    """Of whatever number, also of one that is none."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    bits |= 1
    found = in_constant_memory(HEAD + entry(f"\tadd.f64 \t%fd2, %fd1, 0d{bits:016X};"))
    assert f"0d{bits:016X}}};" in found
    code, _ = assemble(found, "sm_80")
    assert struct.pack("<Q", bits) in code


def test_a_long_polynomial_takes_fewer_instructions() -> None:
    """What it is for, as the assembler has it: the code is shorter."""
    numbers = [f"0d3FE{n * 0x9E3779B97F4A7 % (1 << 52):013X}" for n in range(1, 41)]
    body = "\n".join(f"\tfma.rn.f64 \t%fd1, %fd1, %fd1, {n};" for n in numbers)
    text = HEAD.replace("sm_80", "sm_90a") + entry(body + "\n\tmov.f64 \t%fd2, %fd1;")
    before, _ = assemble(text, "sm_90a")
    after, _ = assemble(in_constant_memory(text), "sm_90a")
    assert text_bytes(after) < text_bytes(before)


def text_bytes(code: bytes) -> int:
    """Bytes of instructions of a cubin's only kernel."""
    start = struct.unpack_from("<Q", code, 40)[0]
    count = struct.unpack_from("<H", code, 60)[0]
    flags = [struct.unpack_from("<IIQQQQ", code, start + 64 * n) for n in range(count)]
    return sum(size for _, _, flag, _, _, size in flags if flag & 4)
