"""Templates become functions: placeholders replaced, layout and comments kept, Python all the way."""

from __future__ import annotations

import ast
import textwrap

import pytest

from irkit.errors import UnsupportedError
from irkit.rkernels import registry
from irkit.rkernels.templates import specialise, template_source

TEXT = textwrap.dedent('''
    def kernel(task, OPERANDS):
        """KEEP this docstring; kernel and K stay here."""
        r0, r1 = RANGE(task)
        for k in range(K):  # K times
            if k:
                STORE(OPERANDS, "K", k)

        return kernel
''').lstrip()


def test_names_are_replaced_and_nothing_else():
    names = {"OPERANDS": "p0, p1", "RANGE": "gemm_0_range", "K": "16", "STORE": "gemm_0_store"}
    assert (
        specialise(TEXT, "kernel", "gemm_0", names)
        == textwrap.dedent('''
        def gemm_0(task, p0, p1):
            """KEEP this docstring; kernel and K stay here."""
            r0, r1 = gemm_0_range(task)
            for k in range(16):  # K times
                if k:
                    gemm_0_store(p0, p1, "K", k)

            return gemm_0
    ''').lstrip()
    )


def test_no_placeholder_no_change():
    text = "def f(a):\n    if a:\n        return (a +\n                1)\n\n    return -a  # end\n"
    assert specialise(text, "other", "new", {}) == text


def test_a_placeholder_without_meaning():
    with pytest.raises(UnsupportedError, match="placeholder RANGE in rKernel template 'kernel'"):
        specialise(TEXT, "kernel", "gemm_0", {"OPERANDS": "p0"})


def all_rkernels():
    for target in ("cpu", "cuda"):
        registry._load(target)
    return sorted(
        (k for kernels in registry._REGISTERED.values() for k in kernels),
        key=lambda k: (k.target, k.name),
    )


@pytest.mark.parametrize("rkernel", all_rkernels(), ids=lambda k: f"{k.target}:{k.name}")
def test_every_template_is_a_function_of_its_rtask(rkernel):
    source = template_source(rkernel)
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    arguments = [a.arg for a in function.args.args]
    assert arguments[:3] == ["task", "tasks", "rows"]
    assert arguments[-1] == ("MAPS" if rkernel.maps else "OPERANDS")
    # Whatever stands in for the placeholders, what comes out is Python.
    names = {n.id: f"x_{n.id.lower()}" for n in ast.walk(function) if isinstance(n, ast.Name)}
    names |= {a: a.lower() for a in arguments}
    used = {n: text for n, text in names.items() if n.isupper()}
    made = specialise(source, rkernel.function, "made", used)
    (again,) = ast.parse(made).body
    assert again.name == "made"
    assert not [n for n in ast.walk(again) if isinstance(n, ast.Name) and n.id.isupper()]
    assert made.count("\n") == source.count("\n")
    if not callable(rkernel.parameters):
        assert set(rkernel.parameters) <= set(used)


def test_two_variants_of_gemm_and_gemv_on_both_targets():
    names = {(k.target, k.family): 0 for k in all_rkernels()}
    for rkernel in all_rkernels():
        names[rkernel.target, rkernel.family] += 1
    for target in ("cpu", "cuda"):
        assert names[target, "gemm"] >= 2
        assert names[target, "gemv"] >= 2


def test_an_rkernel_of_ones_own():
    own = registry.RKernel("map", "mine", "cpu", __name__, "map_mine")
    try:
        assert registry.register(own) is own
        assert registry.find("cpu", "map.mine") is own
        newer = registry.register(registry.RKernel("map", "mine", "cpu", __name__, "newer"))
        assert registry.find("cpu", "map.mine") is newer
    finally:
        known = registry._REGISTERED["cpu", "map"]
        known[:] = [k for k in known if k.variant != "mine"]
    with pytest.raises(
        UnsupportedError, match=r"rKernel 'map\.mine' for cpu; there are .*map\.rows"
    ):
        registry.find("cpu", "map.mine")


def test_metadata_imports_without_numba():
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['numba'] = None; sys.modules['numba_cuda'] = None\n"
        "from irkit.rkernels import registry\n"
        "for t in ('cpu', 'cuda'): registry._load(t)\n"
        "print(len(registry._REGISTERED) > 15)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr
