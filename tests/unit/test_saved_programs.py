"""Saved programs and the disk cache: whole or refused, without xDSL, from many threads and processes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest

import irkit
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.driver.compiler.targets import DEVICES
from irkit.runtime import artifact as artifacts
from irkit.runtime import loading
from irkit.runtime.artifact import Artifact
from irkit.runtime.program import CompiledProgram
from irkit.runtime.variant import Variant

ROOT = Path(irkit.__file__).parent.parent
RNG = np.random.default_rng(7)
X = RNG.standard_normal((9, 4)).astype(np.float32)
NET = """\
func.func @main(%x: tensor<?x4xf32>, %y: tensor<8x4xf32>) -> (tensor<?x4xf32>, tensor<8x8xf32>) {
  %0 = graph.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %t = graph.transpose %y {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = graph.matmul %y, %t : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  func.return %0, %1 : tensor<?x4xf32>, tensor<8x8xf32>
}
"""
Y = RNG.standard_normal((8, 4)).astype(np.float32)


def check(program):
    """The program computes what NET says, for one row and several."""
    for rows in (1, 5, 9):
        relu, product = program(X[:rows], Y)
        np.testing.assert_array_equal(relu, np.maximum(X[:rows], 0))
        np.testing.assert_allclose(product, Y @ Y.T, rtol=1e-5)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRKIT_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    path = tmp_path_factory.mktemp("net") / "net.mlir"
    path.write_text(NET)
    return path


@pytest.fixture(scope="module")
def artifact(net, cache):
    """NET for a CPU with four vEUs, which may be more than this machine has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DEVICES, "cpu", "cpu4")
        return build_artifact(read_model(net, "float32"), "cpu")


@pytest.fixture(scope="module")
def saved(artifact, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "net.irkit"
    artifact.save(path)
    return path


def files(folder):
    """All files below a folder with what tells whether they were written anew."""
    return {
        p.relative_to(folder).as_posix(): (p.stat().st_mtime_ns, p.stat().st_ino)
        for p in folder.rglob("*")
        if p.is_file()
    }


def python(code, folder, *arguments):
    """Run Python on a cache of its own choice; returns what it prints."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={**os.environ, "IRKIT_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


# Modes


@pytest.mark.parametrize("mode", ["auto", "serial", "per-op", "per-wave", "persistent"])
def test_modes_agree(artifact, mode):
    program = CompiledProgram({"float32": Variant(artifact, mode)})
    assert program.report()["mode"] == mode
    for _ in range(6):
        check(program)


def test_one_row_runs_what_does_not_depend_on_the_batch(artifact):
    executor = Variant(artifact).executor
    program, tables = executor.program, executor.tables
    parts = [a.tasks for a in program.appends if not program.cuts_batch(a)]
    assert any(program.cuts_batch(a) for a in program.appends)
    assert parts
    shares = [1 if program.cuts_batch(a) else a.tasks for a in program.appends]
    assert len(tables.one_row) == sum(shares)
    product, relu = np.full((8, 8), np.nan, np.float32), np.full((1, 4), np.nan, np.float32)
    executor.run_row([X[:1], Y], [relu, product])
    np.testing.assert_array_equal(relu, np.maximum(X[:1], 0))
    np.testing.assert_allclose(product, Y @ Y.T, rtol=1e-5)


@pytest.mark.parametrize("mode", ["auto", "persistent", "per-wave"])
def test_threads_share_a_program(artifact, mode):
    program = CompiledProgram({"float32": Variant(artifact, mode)})
    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(check, program) for _ in range(60)]:
            done.result(timeout=300)


def test_a_forked_child_has_threads_of_its_own(artifact):
    """Needs fork: the pool of the parent is not there in the child."""
    code = """
    import os, sys, numpy as np, irkit
    program = irkit.load(sys.argv[1], mode="persistent")
    x, y = np.ones((5, 4), np.float32), np.ones((8, 4), np.float32)
    program(x, y)
    child = os.fork()
    if not child:
        ok = bool((program(x, y)[1] == 4).all())
        os._exit(0 if ok else 1)
    print(os.waitpid(child, 0)[1])
    """
    path = Path(artifacts.cache_folder()) / "forked.irkit"
    artifact.save(path)
    assert output(python(code, artifacts.cache_folder(), path)).split() == ["0"]


# Files


def test_round_trip(saved, artifact):
    program = irkit.load(saved)
    check(program)
    assert program.source == artifact.source
    assert program.ir("schedule") == artifact.ir["schedule"]
    again = saved.with_name("again.irkit")
    program.save(again)
    assert Artifact.load(again).ir == Artifact.load(saved).ir
    check(irkit.load(again))


def test_load_needs_no_xdsl_and_compiles_nothing(saved, artifact, cache):
    check(irkit.load(saved))
    before = files(cache)
    code = """
    import sys
    sys.modules["xdsl"] = None
    import irkit, numpy as np
    from numba.core.event import install_recorder
    with install_recorder("numba:compile") as compiled:
        program = irkit.load(sys.argv[1])
        relu, product = program(np.ones((3, 4), np.float32), np.ones((8, 4), np.float32))
    print(float(product.sum()), len(compiled.buffer))
    """
    assert output(python(code, cache, saved)).strip() == "256.0 0"
    after = files(cache)
    # Python itself keeps the emitted module's bytecode.
    assert {n: s for n, s in after.items() if not n.endswith(".pyc")} == {
        n: s for n, s in before.items() if not n.endswith(".pyc")
    }


def test_a_second_process_finds_what_the_first_compiled(net, tmp_path):
    code = """
    import os, sys, numpy as np, irkit
    os.environ["IRKIT_COMPILE_WORKERS"] = "0"  # what another process compiles is not counted here
    from numba.core.event import install_recorder
    with install_recorder("numba:compile") as compiled:
        program = irkit.compile(sys.argv[1], target="cpu")
    print(sum(e.is_start and e.data["dispatcher"].__name__ in ("run", "call") for _, e in compiled.buffer))
    """
    assert output(python(code, tmp_path, net)).strip() == "2"
    before = files(tmp_path)
    assert output(python(code, tmp_path, net)).strip() == "0"
    after = files(tmp_path)
    assert {n: s for n, s in after.items() if not n.endswith(".pyc")} == {
        n: s for n, s in before.items() if not n.endswith(".pyc")
    }


def test_two_processes_compile_at_once(net, tmp_path):
    code = """
    import sys, numpy as np, irkit
    program = irkit.compile(sys.argv[1], target="cpu")
    print(float(program(np.ones((3, 4), np.float32), np.ones((8, 4), np.float32))[1].sum()))
    """
    both = [python(code, tmp_path, net) for _ in range(2)]
    assert [output(p).strip() for p in both] == ["256.0", "256.0"]
    assert not list(tmp_path.rglob("*.partial"))
    assert len(list(tmp_path.glob("programs/*.irkit"))) == 1


def test_files_cut_short(saved, tmp_path):
    data = saved.read_bytes()
    path = tmp_path / "cut.irkit"
    cuts = {0, 1, 2, 3, 4, 29, 30, len(data) - 1, len(data) - 21, len(data) - 22, len(data) - 23}
    for cut in sorted(cuts | set(range(0, len(data), len(data) // 97))):
        path.write_bytes(data[:cut])
        with pytest.raises(irkit.ArtifactError, match=r"cut\.irkit"):
            irkit.load(path)


def test_files_with_wrong_bytes(saved, tmp_path):
    """A changed byte is found, or is one that nothing reads (a time stamp, say)."""
    data, path = saved.read_bytes(), tmp_path / "wrong.irkit"
    whole = Artifact.load(saved)
    random.seed(3)
    refusals: list[irkit.ArtifactError] = []
    for at in [
        *range(80),
        *range(len(data) - 400, len(data)),
        *random.sample(range(len(data)), 400),
    ]:
        path.write_bytes(
            data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]
        )
        try:
            loaded = Artifact.load(path)
        except irkit.ArtifactError as error:
            refusals.append(error)
            continue
        assert loaded.source == whole.source
        assert loaded.report == whole.report
        assert loaded.info == whole.info
    assert len(refusals) > 500
    assert all("wrong.irkit" in str(e) for e in refusals)
    assert all(e.__suppress_context__ or e.__context__ is None for e in refusals)


def rewritten(saved, path, change):
    """A copy of a saved program whose members `change` has changed."""
    with zipfile.ZipFile(saved) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    change(manifest, members)
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


CHANGES = {
    "version": (lambda m, _: m.update(version=99), "irkit-program 99; this irkit reads"),
    "format": (lambda m, _: m.update(format="other"), "of format other 10"),
    "no digests": (lambda m, _: m.pop("digests"), "no digests"),
    "no target": (lambda m, _: m.pop("target"), "no target"),
    "report": (lambda m, _: m.update(report=[]), "no report"),
    "source": (lambda _, f: f.update({"module.py": b"import os"}), "module.py does not match"),
    "no source": (lambda m, f: (f.pop("module.py"), m["digests"].pop("module.py")), "module.py"),
    "extra": (lambda _, f: f.update({"more.py": b""}), "more.py does not match"),
    "weights": (lambda _, f: f.update({"constants.safetensors": b"?"}), "constants.safetensors"),
    "target": (lambda m, _: m.update(target="tpu"), "target 'tpu'"),
    "info": (lambda m, _: m.update(info="{}"), "facts"),
    "deep info": (lambda m, _: m.update(info="[" * 100_000), "facts"),
    "info is no JSON": (lambda m, _: m.update(info="{"), "facts"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_foreign_files(saved, tmp_path, name):
    change, words = CHANGES[name]
    path = rewritten(saved, tmp_path / "other.irkit", change)
    with pytest.raises(irkit.ArtifactError) as info:
        irkit.load(path)
    assert words in str(info.value)
    assert "other.irkit" in str(info.value)
    assert info.value.__suppress_context__ or info.value.__context__ is None


def test_a_manifest_that_is_nested_deeply(saved, tmp_path):
    path = tmp_path / "deep.irkit"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", "[" * 100_000)
    with pytest.raises(irkit.ArtifactError, match=r"deep\.irkit"):
        irkit.load(path)


def test_other_files(tmp_path):
    (tmp_path / "text").write_text("not a program")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("hello", "world")
    for name in ("text", "zip", "absent", "."):
        with pytest.raises(irkit.ArtifactError):
            irkit.load(tmp_path / name)


def test_where_nothing_can_be_written(saved, tmp_path):
    program = irkit.load(saved)
    for path in (tmp_path / "no folder" / "p.irkit", tmp_path):
        with pytest.raises(irkit.ArtifactError, match="cannot write"):
            program.save(path)
    assert not list(tmp_path.rglob("*.partial"))


def test_a_save_that_fails_leaves_the_old_file(saved, tmp_path, monkeypatch):
    path = tmp_path / "p.irkit"
    path.write_bytes(saved.read_bytes())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artifacts.os, "replace", full)
    with pytest.raises(irkit.ArtifactError, match="No space left"):
        irkit.load(saved).save(path)
    assert path.read_bytes() == saved.read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["p.irkit"]


# The cache


def test_a_damaged_cache_entry_is_made_anew(net, artifact, cache, monkeypatch):
    monkeypatch.setitem(DEVICES, "cpu", "cpu4")
    (entry,) = [p for p in cache.glob("programs/*") if Artifact.load(p).source == artifact.source]
    whole = entry.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"x" * 99):
        entry.write_bytes(damaged)
        assert build_artifact(read_model(net, "float32"), "cpu").source == artifact.source
        assert Artifact.load(entry).source == artifact.source


@pytest.mark.parametrize("damage", [b"", b"\x80\x04junk"])
def test_damaged_machine_code_is_made_anew(saved, tmp_path, damage):
    code = """
    import sys, numpy as np, irkit
    program = irkit.load(sys.argv[1])
    print(float(program(np.ones((3, 4), np.float32), np.ones((8, 4), np.float32))[1].sum()))
    """
    assert output(python(code, tmp_path, saved)).strip() == "256.0"
    for path in tmp_path.glob("rkernels/*"):
        path.write_bytes(damage)
    assert output(python(code, tmp_path, saved)).strip() == "256.0"


@pytest.mark.parametrize("blocked", ["", "a file", "programs", "rkernels", "parent"])
def test_a_cache_that_cannot_be_written(net, tmp_path, monkeypatch, blocked):
    folder = tmp_path / "cache"
    if blocked == "a file":
        folder.write_text("in the way")
    elif blocked == "parent":
        folder.write_text("in the way")
        folder = folder / "below"
    elif blocked:
        folder.mkdir()
        (folder / blocked).write_text("in the way")
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(folder) if blocked else "")
    monkeypatch.setattr(loading, "_loaded", WeakValueDictionary())
    check(irkit.compile(net, target="cpu"))


# Programs with a variant for each dtype


def test_variants(tmp_path):
    linear = pytest.importorskip("sklearn.linear_model")
    x = RNG.standard_normal((40, 3))
    model = linear.LogisticRegression().fit(x, x[:, 0] > 0)
    program = irkit.compile(model, target="cpu")
    results: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: results.append(program.predict_proba(x.astype("float32"))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = model.predict_proba(x.astype("float32"))
    assert [r.dtype for r in results] == [want.dtype] * 3
    for result in results:
        np.testing.assert_allclose(result, want, atol=1e-6)
    path = tmp_path / "p.irkit"
    program.save(path)
    # Rows of CSR matrices have programs of their own.
    variants = ("csr-float32", "csr-float64", "float32")
    names = ["p.irkit", *(f"p.irkit.{v}" for v in variants)]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    loaded = irkit.load(path)
    for dtype in ("float64", "float32"):
        np.testing.assert_array_equal(
            loaded.predict_proba(x.astype(dtype)), program.predict_proba(x.astype(dtype))
        )
    report = loaded.report()
    assert set(report["levels"]) == {"graph", "tensor", "task", "schedule"}
    assert "proved" in report
    assert "graph." in loaded.ir("graph")
    assert "task.append" in loaded.ir()
    assert "PROGRAM = Program(" in loaded.source
    second = path.with_name("p.irkit.float32")
    first = path.read_bytes()
    second.write_bytes(first)
    with pytest.raises(irkit.ArtifactError, match="another program"):
        irkit.load(path)
    second.unlink()
    with pytest.raises(irkit.ArtifactError, match="cannot read"):
        irkit.load(path)


def test_one_dtype_only(net):
    linear = pytest.importorskip("sklearn.linear_model")
    x = RNG.standard_normal((40, 3))
    model = linear.LogisticRegression().fit(x, x[:, 0] > 0)
    program = irkit.compile(model, target="cpu", dtype="float32")
    with pytest.raises(irkit.InvalidInputError, match="expected dtype float32, got float64"):
        program.predict(x)
