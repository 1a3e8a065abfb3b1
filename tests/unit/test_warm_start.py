"""Saved constants are read once, to their places; a file that was compiled before is not read again."""

from __future__ import annotations

import json
import mmap
import os
import struct
import zipfile
from itertools import pairwise

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import irkit
from irkit.bfloat16 import BFLOAT16
from irkit.driver.compiler import compile as compiling
from irkit.runtime import code_store, digests, least_used, program_files
from irkit.runtime.artifact import Artifact
from irkit.runtime.digests import digest_of, file_digest
from irkit.runtime.program_files import LARGE
from irkit.runtime.stored_arrays import ALIGN, arrays_of, constant_places, in_place, pieces_of
from irkit.runtime.variant import Variant

onnx = pytest.importorskip("onnx")
RNG = np.random.default_rng(11)
DTYPES = ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"] + ["bfloat16"] * (
    BFLOAT16 is not None
)


def joined(arrays, places=None):
    return b"".join(bytes(p) for p in pieces_of(arrays, places or {}))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_arrays_come_back_and_lie_in_their_places(data):
    arrays, places, at = {}, {}, 0
    for number in range(data.draw(st.integers(0, 6))):
        shape = data.draw(st.lists(st.integers(0, 4), max_size=3))
        dtype = np.dtype(data.draw(st.sampled_from(DTYPES)))
        arrays[f"a{number}"] = RNG.integers(0, 99, shape).astype(dtype)
        if data.draw(st.booleans()):
            at += data.draw(st.integers(0, 300))
            places[f"a{number}"] = at
            at += arrays[f"a{number}"].nbytes
    stored = joined(arrays, places)
    found = arrays_of(memoryview(stored))
    assert found.keys() == arrays.keys()
    (length,) = struct.unpack("<Q", stored[:8])
    assert (length + 8) % ALIGN == 0
    entries = json.loads(stored[8 : 8 + length])
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
        assert not found[name].flags.writeable
        if name in places:
            assert entries[name]["data_offsets"][0] == places[name]
    if not any(a.dtype == BFLOAT16 for a in arrays.values()):
        plain = safetensors.numpy.load(stored)
        assert all(np.array_equal(plain[name], array) for name, array in arrays.items())


def test_places_that_overlap_are_none():
    arrays = {"a": np.arange(4), "b": np.arange(5)}
    found = arrays_of(memoryview(joined(arrays, {"a": 0, "b": 8})))
    assert all(np.array_equal(found[n], arrays[n]) for n in arrays)


def test_the_names_of_padding_are_refused():
    with pytest.raises(irkit.ArtifactError, match=r"irkit\.padding\.x"):
        pieces_of({"irkit.padding.x": np.zeros(3)}, {})


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
BAD = {
    "no mapping": [],
    "no dtype": {"a": {"shape": [2], "data_offsets": [0, 8]}},
    "other dtype": {"a": {**GOOD, "dtype": "F8"}},
    "negative": {"a": {**GOOD, "shape": [-2]}},
    "shape": {"a": {**GOOD, "shape": [3]}},
    "float": {"a": {**GOOD, "shape": [2.0]}},
    "truth": {"a": {**GOOD, "shape": [2, True]}},
    "behind the end": {"a": {**GOOD, "shape": [4], "data_offsets": [0, 16]}},
    "hole": {"a": {**GOOD, "shape": [1], "data_offsets": [4, 8]}},
    "rest": {"a": {**GOOD, "shape": [1], "data_offsets": [0, 4]}},
    "twice": {"a": GOOD, "b": GOOD},
    "backwards": {"a": {**GOOD, "data_offsets": [8, 0]}},
    "number": {"a": 3},
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_headers_are_refused(name):
    text = json.dumps(BAD[name]).encode()
    with pytest.raises((ValueError, KeyError)):
        arrays_of(memoryview(struct.pack("<Q", len(text)) + text + bytes(8)))


DEEP = struct.pack("<Q", 100_000) + b"[" * 100_000


@pytest.mark.parametrize("data", [b"", b"1234567", b"\xff" * 8, struct.pack("<Q", 9) + b"{}", DEEP])
def test_what_is_too_short_is_refused(data):
    with pytest.raises(ValueError, match="safetensors"):
        arrays_of(memoryview(data))


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=99), st.lists(st.integers(0, 99), max_size=5), st.integers(1, 40))
def test_a_digest_does_not_hang_on_where_parts_are_cut(data, cuts, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "PIECE_BYTES", piece)
        at = sorted({0, len(data), *(min(c, len(data)) for c in cuts)})
        parts = [data[a:b] for a, b in pairwise(at)]
        assert digest_of(parts) == digest_of([data])
        changed = bytes([data[0] ^ 1]) + data[1:] if data else b"x"
        assert digest_of([changed]) != digest_of([data])


def test_a_digest_is_that_of_the_file(tmp_path):
    data = RNG.bytes(digests.PIECE_BYTES + 77)
    (tmp_path / "f").write_bytes(data)
    assert file_digest(tmp_path / "f") == digest_of([data]) != digest_of([data[:-1]])


# Programs

WEIGHTS = RNG.standard_normal((640, 640)).astype(np.float32)
BIAS = RNG.standard_normal(640).astype(np.float32)
X = RNG.standard_normal((3, 640)).astype(np.float32)
WANT = np.maximum(X @ WEIGHTS + BIAS, 0)


def model(path, bias=BIAS, **options):
    helper = onnx.helper
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    ports = [
        helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N", 640]) for n in ("x", "y")
    ]
    weights = [onnx.numpy_helper.from_array(a, n) for a, n in ((WEIGHTS, "w"), (bias, "b"))]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path, **options)
    return path


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRKIT_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def net(tmp_path_factory, cache):
    path = model(tmp_path_factory.mktemp("net") / "net.onnx")
    check(irkit.compile(path, target="cpu"))
    return path


@pytest.fixture
def reads(monkeypatch):
    """The models that were read."""
    found = []
    read = compiling.read_for_batch

    def counted(model, *arguments):
        found.append(model)
        return read(model, *arguments)

    monkeypatch.setattr(compiling, "read_for_batch", counted)
    return found


def check(program, want=WANT):
    np.testing.assert_allclose(program(X), want, atol=1e-3)
    return program


def test_saved_constants_are_used_where_they_were_read(net, cache):
    (entry,) = cache.glob("programs/*.irkit")
    artifact = Artifact.load(entry)
    variant = Variant(artifact)
    program = variant.executor.program
    assert constant_places(artifact.source) == {n: at for n, at, _ in program.constants}
    place = in_place(artifact.weights, program.constants)
    assert sum(a.nbytes for a in artifact.weights.values()) > LARGE
    assert place is not None
    assert variant.executor.workspace().bases[2] == place
    np.testing.assert_allclose(variant.run([X])[0], WANT, atol=1e-3)
    artifact.weights = {n: a.copy() for n, a in artifact.weights.items()}
    moved = Variant(artifact)
    assert moved.executor.workspace().bases[2] != place
    np.testing.assert_array_equal(moved.run([X])[0], variant.run([X])[0])


def owner(array):
    """What the memory of an array belongs to."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array


def test_saved_constants_are_mapped_and_not_copied(net, cache, tmp_path):
    (entry,) = cache.glob("programs/*.irkit")
    artifact = Artifact.load(entry)
    large = [a for a in artifact.weights.values() if a.nbytes > LARGE]
    assert large
    assert all(isinstance(owner(a), mmap.mmap) for a in large)
    # A program may replace the file that it lies in.
    saved = tmp_path / "p.irkit"
    saved.write_bytes(entry.read_bytes())
    program = check(irkit.load(saved))
    program.save(saved)
    check(program)
    check(irkit.load(saved))


def test_constants_that_start_on_no_page_are_read(net, cache, tmp_path, monkeypatch):
    (entry,) = cache.glob("programs/*.irkit")
    artifact = Artifact.load(entry)
    # As files were written before.
    monkeypatch.setattr(program_files, "_on_a_page", lambda name, at: zipfile.ZipInfo(name))
    artifact.save(tmp_path / "p.irkit")
    found = Artifact.load(tmp_path / "p.irkit")
    assert not any(isinstance(owner(a), mmap.mmap) for a in found.weights.values())
    np.testing.assert_allclose(Variant(found).run([X])[0], WANT, atol=1e-3)


def test_a_file_cut_in_its_constants_is_refused(cache, net, tmp_path):
    (entry,) = cache.glob("programs/*.irkit")
    data = entry.read_bytes()
    at = data.index(BIAS.tobytes())
    wrong = tmp_path / "p.irkit"
    for damaged in (data[: at + 9], data[:at] + b"\0\0\0\0" + data[at + 4 :]):
        wrong.write_bytes(damaged)
        with pytest.raises(irkit.ArtifactError, match=r"p\.irkit"):
            irkit.load(wrong)


def test_a_file_that_was_compiled_is_not_read_again(net, reads):
    check(irkit.compile(net, target="cpu"))
    check(irkit.compile(str(net), target="cpu"))
    assert not reads


def test_an_equal_file_elsewhere_is_not_read(net, reads, tmp_path):
    (tmp_path / "other.onnx").write_bytes(net.read_bytes())
    check(irkit.compile(tmp_path / "other.onnx", target="cpu"))
    assert not reads


def test_a_model_in_memory_is_not_imported_again(net, reads):
    proto = onnx.load(net)
    check(irkit.compile(proto, target="cpu"))
    first = len(reads)
    check(irkit.compile(proto, target="cpu"))
    assert len(reads) == first
    proto.graph.node[1].op_type = "Neg"
    check(irkit.compile(proto, target="cpu"), -(X @ WEIGHTS + BIAS))
    assert len(reads) == first + 1


@pytest.mark.parametrize(
    "other",
    [{"batch": 3}, {"fastmath": ()}, {"precision": "ieee"}, {"device": "cpu1"}, {"policy": "list"}],
)
def test_other_arguments_are_another_program(net, reads, other):
    check(irkit.compile(net, **({"target": "cpu"} | other)))
    assert reads == [net]


def test_another_file_of_the_same_name_is_read(net, reads, tmp_path):
    path = model(tmp_path / "net.onnx")
    check(irkit.compile(path, target="cpu"))
    model(path, -BIAS)
    check(irkit.compile(path, target="cpu"), np.maximum(X @ WEIGHTS - BIAS, 0))
    assert reads == [path]


def test_a_file_that_changes_while_it_is_read_is_not_noted(net, reads, tmp_path, monkeypatch):
    path = model(tmp_path / "net.onnx", 2 * BIAS)
    old, read = path.read_bytes(), compiling.read_for_batch

    def changed(found, *arguments):
        model(path, 3 * BIAS)
        return read(found, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(compiling, "read_for_batch", changed)
        check(irkit.compile(path, target="cpu"), np.maximum(X @ WEIGHTS + 3 * BIAS, 0))
    path.write_bytes(old)
    check(irkit.compile(path, target="cpu"), np.maximum(X @ WEIGHTS + 2 * BIAS, 0))


def test_data_in_other_files_are_read_each_time(cache, reads, tmp_path):
    path = tmp_path / "net.onnx"
    options = {"save_as_external_data": True, "location": "net.data", "size_threshold": 0}
    model(path, **options)
    check(irkit.compile(path, target="cpu"))
    (tmp_path / "net.data").unlink()
    model(path, -BIAS, **options)
    check(irkit.compile(path, target="cpu"), np.maximum(X @ WEIGHTS - BIAS, 0))
    assert reads == [path, path]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"program": 3}', b'{"program": "x.irkit"}'])
def test_a_damaged_note_is_none(net, reads, tmp_path, monkeypatch, cache, damage):
    notes = list(cache.glob("programs/*.known"))
    assert notes
    kept = {note: note.read_bytes() for note in notes}
    for note in notes:
        note.write_bytes(damage)
    check(irkit.compile(net, target="cpu"))
    assert reads == [net]
    assert sum(note.read_bytes() in kept.values() for note in notes) == 1
    for note, data in kept.items():
        note.write_bytes(data)


def test_without_the_cache_nothing_is_noted(net, reads, cache):
    before = set(cache.rglob("*.known"))
    check(irkit.compile(net, target="cpu", cache=False))
    assert reads == [net]
    assert set(cache.rglob("*.known")) == before


# Folders of bounded size


def entries(folder, *names):
    """Files, and folders with a file, of 1000 bytes each; the first was used longest ago."""
    for age, name in enumerate(reversed(names)):
        path = folder / name
        if name.startswith("d"):
            path.mkdir()
            (path / "inner").mkdir()
            (path / "inner" / "f").write_bytes(bytes(1000))
        else:
            path.write_bytes(bytes(1000))
        os.utime(path, (1e9 - age, 1e9 - age))


def test_what_was_used_longest_ago_goes(tmp_path):
    entries(tmp_path, "a", "d1", "b", "d2", "c")
    least_used.used(tmp_path / "d1")
    least_used.prune(tmp_path, 3000)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "d1", "d2"]
    least_used.prune(tmp_path, 0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d1"]
    least_used.prune(tmp_path / "absent", 0)


def test_programs_have_a_limit(net, tmp_path, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))
    (tmp_path / "programs").mkdir()
    entries(tmp_path / "programs", "a", "d1", "b")
    monkeypatch.setattr("irkit.driver.compiler.cache.LIMIT_BYTES", 1500)
    check(irkit.compile(net, target="cpu"))
    left = [p.name for p in (tmp_path / "programs").iterdir()]
    assert not {"a", "d1"} & {*left}
    # The program that was just made is never the one that goes.
    assert len(list(tmp_path.glob("programs/*.irkit"))) == 1


def test_entries_that_were_packed_otherwise_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))
    code_store.keep("key", b"code")
    assert code_store.kept("key") == b"code"
    monkeypatch.setattr(code_store, "_format", lambda: "another")
    assert code_store.kept("key") is None


def test_entries_that_vanish_meanwhile_do_not_matter(tmp_path, monkeypatch):
    entries(tmp_path, "a", "b", "c")
    size = least_used._size

    def vanishing(entry):
        if entry.name == "b":
            os.unlink(entry.path)
            raise FileNotFoundError(entry.path)
        return size(entry)

    monkeypatch.setattr(least_used, "_size", vanishing)
    least_used.prune(tmp_path, 1000)
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
