"""rKernels of CUDA modules: compiled by themselves, linked into the entries, kept across models."""

import importlib.util
import struct

import pytest

import irkit
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.runtime import code_store, side_by_side
from irkit.runtime.compile_worker import take_step
from irkit.runtime.cuda import assembling, compiling, linking
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.cuda.unit_code import called
from irkit.runtime.units import NoEmittedModuleError, parts_of

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="needs numba-cuda"
)
ARCH = "sm_90a"
RELU = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = "graph.relu"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %0 : tensor<64x64xf32>
}
"""
SOFTMAX = """
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = "graph.relu"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = "graph.softmax"(%w) <{axis = 1 : i64}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
"""


@pytest.fixture
def compiled(monkeypatch):
    """The forms that were compiled."""
    found = []

    def counted(step, arguments):
        if step == "cuda":
            found.append(arguments[0])
        return take_step(step, arguments)

    monkeypatch.setattr(side_by_side, "take_step", counted)
    # All of them in this process.
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 1)
    return found


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path / "cache"))

    def made(text):
        path = tmp_path / "net.mlir"
        path.write_text(text)
        return build_artifact(read_model(path, "float32"), "h200", False).source

    return made


def built(text):
    _, facts = read_facts(text)
    return compiling.compile_module_with_ptx(text, facts.entries, facts.threads, ARCH)


def test_linked_entries_take_what_whole_modules_do(source):
    """Registers, stack and spills of every entry are those of a module that is compiled in one piece, but for
    what walks: there rKernels read the thread's number where they run."""
    text = source(SOFTMAX)
    _, facts = read_facts(text)
    module = compiling.load_module(text)
    ptx = compiling.module_ptx(module, facts.entries, facts.threads, ARCH)
    cubin, log = compiling.assemble(ptx, ARCH)
    whole = compiling.CompiledModule(cubin, ptx, log)
    linked = built(text)
    found, wanted = linked.resources(), whole.resources()
    assert found.keys() == wanted.keys() == set(facts.entries)
    for entry in facts.entries:
        few = 8 if entry == "persistent" else 0
        assert abs(found[entry].pop("registers") - wanted[entry].pop("registers")) <= few
        assert found[entry] == wanted[entry]


def instructions(image):
    """The machine code of an ELF image: section -> bytes."""
    start, size, count, names = struct.unpack_from("<40xQ10xHHH", image)
    rows = [struct.unpack_from("<I20xQQ", image, start + size * n) for n in range(count)]
    texts = {
        image[rows[names][1] + name :].split(b"\0")[0]: image[a : a + n] for name, a, n in rows
    }
    return {name: code for name, code in texts.items() if name.startswith(b".text")}


def test_groups_have_the_instructions_of_one_image(source, monkeypatch):
    monkeypatch.setattr(linking, "GROUP", 1)
    text = source(SOFTMAX)
    found = built(text)
    images = assembling.images_of(found.cubin)
    assert len(images) == 3
    _, facts = read_facts(text)
    assert assembling.kernels_of(images) | {"persistent": 0, "op_0": 1, "op_1": 2} == (
        assembling.kernels_of(images)
    )
    made = linking.linked_code(parts_of(text), facts.entries, facts.threads, ARCH)
    whole, log = assembling.assemble([ptx for ptx, _, _ in made], ARCH)
    apart = {}
    for image in images:
        apart |= instructions(image)
    assert instructions(whole) == apart
    assert len(apart) >= 4
    assert compiling.CompiledModule(whole, "", log).resources() == found.resources()


def test_a_cubin_cut_short_is_refused(source):
    cubin = built(source(RELU)).cubin
    assert b"".join(assembling.images_of(cubin)) == cubin
    assert len(assembling.images_of(cubin)) == 2
    for cut in (*range(5, 70), len(cubin) // 2, len(cubin) - 1):
        with pytest.raises(irkit.DeviceError, match="cubin"):
            assembling.images_of(cubin[:cut])
    with pytest.raises(irkit.DeviceError, match="is none"):
        assembling.images_of(cubin + b"rest")
    assert assembling.images_of(b".version 8.5\0") == [b".version 8.5\0"]


def test_models_share_the_ir_of_an_rkernel(source, compiled, tmp_path):
    first = source(RELU)  # compiles it
    second = source(SOFTMAX)
    shared = {u.text for u in parts_of(first).units} & {u.text for u in parts_of(second).units}
    assert shared
    assert len(compiled) == len(set(compiled)) == 2
    for entry in (tmp_path / "cache" / "rkernels").iterdir():
        entry.write_bytes(entry.read_bytes()[:-2])
        assert code_store.kept(entry.name) is None
    assert built(second).cubin
    assert len(compiled) == 4


def test_walkers_say_what_they_call(source):
    text = source(SOFTMAX)
    parts = parts_of(text)
    pointers = called(parts.rest)
    assert {name for unit in parts.units for name in unit.names} >= set(pointers)
    assert all(kinds == ("f32p", "f32p") for kinds in pointers.values())


def test_other_texts_are_no_emitted_modules():
    with pytest.raises(NoEmittedModuleError):
        parts_of("import math\n")
