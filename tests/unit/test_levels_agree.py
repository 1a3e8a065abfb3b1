"""Random programs compute the same at every level, in any interleaving, and compiled in every mode."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import RandomGraph

from irkit.context import IrkitContext
from irkit.driver.compile import DEVICES, build_artifact, run_level
from irkit.driver.registry import register_dialects
from irkit.interp import level_of, run_module
from irkit.runtime.cpu import MODES
from irkit.runtime.program import CompiledProgram, Variant

ROWS = (1, 2, 5)


def close(got, want, message=""):
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5, err_msg=message)


def bring(model, level):
    """Run the standard passes of one level, in place."""
    ctx = IrkitContext(weights=model.weights)
    register_dialects(ctx)
    run_level(ctx, model.module, level, "test4")
    model.module.verify()


def check_levels(seed, size, batch):
    program = RandomGraph(seed, size, batch)
    model = program.model()
    runs = [program.inputs(rows) for rows in (ROWS if batch else (1,))]
    wanted = [run_module(model.module, model.weights, x) for x in runs]
    for level in ("graph", "tensor", "task", "schedule"):
        bring(model, level)
        for number, (x, want) in enumerate(zip(runs, wanted, strict=True)):
            options = [{"seed": 7 * number + s} for s in range(2)]
            for option in options if level_of(model.module) == "schedule" else [{}]:
                close(run_module(model.module, model.weights, x, **option), want, level)
    return model


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.booleans())
def test_levels_agree(seed, size, batch):
    check_levels(seed, size, batch)


@pytest.mark.parametrize("seed", range(4))
def test_compiled_programs_agree(seed, monkeypatch, tmp_path):
    """One compiled module of several ops each, in every mode, four vEUs on whatever cores there are."""
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(DEVICES, "cpu", "cpu4")
    program = RandomGraph(seed, 14, batch=seed % 2 == 0)
    model = program.model()
    runs = [program.inputs(rows) for rows in ((*ROWS, 33) if seed % 2 == 0 else (1,))]
    wanted = [run_module(model.module, model.weights, x) for x in runs]
    artifact = build_artifact(model, "cpu")
    for mode in ("auto", *MODES):
        compiled = CompiledProgram({"float32": Variant(artifact, mode)})
        for x, want in zip(runs, wanted, strict=True):
            close(compiled.run(x), want, mode)


# Mutants of the text


def scheduled(seed):
    model = RandomGraph(seed, 8, batch=False).model()
    for level in ("graph", "tensor", "task", "schedule"):
        bring(model, level)
    return str(model.module)
