"""Random programs compute the same at every level, in any interleaving, and compiled in every mode."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import RandomGraph
from xdsl.utils.exceptions import PassFailedException

from irkit.context import IrkitContext
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.targets import DEVICES
from irkit.driver.files.parsing import parse_module
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.errors import InvalidModelError, ScheduleError
from irkit.interp import level_of, run_module
from irkit.passes.task.verify_schedule import VerifySchedule
from irkit.runtime.program import CompiledProgram
from irkit.runtime.variant import Variant

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
    for mode in ("auto", *Variant(artifact).executor.choice.allowed):
        compiled = CompiledProgram({"float32": Variant(artifact, mode)})
        for x, want in zip(runs, wanted, strict=True):
            close(compiled.run(x), want, mode)


# Mutants of the text


def parsed(text):
    ctx = IrkitContext()
    register_dialects(ctx)
    return ctx, parse_module(ctx, text, "mutant")


def rejected(text):
    """Whether verify-schedule refuses the program of this text."""
    ctx, module = parsed(text)
    try:
        VerifySchedule().apply(ctx, module)
    except PassFailedException:
        return True
    return False


def goes_wrong(text, model, program, tries=24):
    """Whether some interleaving of the program of this text gives another answer, or none."""
    _, module = parsed(text)
    x = program.inputs(1)
    want = None
    for seed in range(tries):
        try:
            got = run_module(module, model.weights, x, seed=seed)
        except (ScheduleError, InvalidModelError):
            return True
        want = want or run_module(parsed(str(model.module))[1], model.weights, x)
        if any(not np.array_equal(g, w, equal_nan=True) for g, w in zip(got, want, strict=True)):
            return True
    return False


def mutants(text):
    """The text with one wait dropped, one buffer moved, one append moved, or two appends swapped."""
    for match in re.finditer(r"wait\(([^)]*)\) ", text):
        waits = match[1].split(", ")
        for number in range(len(waits)):
            left = ", ".join(waits[:number] + waits[number + 1 :])
            put = f"wait({left}) " if left else ""
            yield "wait", text[: match.start()] + put + text[match.end() :]
    offsets = list(re.finditer(r'space = "arena", offset = (\d+)', text))
    for match in offsets:
        for other in {m[1] for m in offsets} - {match[1]}:
            yield "offset", text[: match.start(1)] + other + text[match.end(1) :]
    lines = text.split("\n")
    appends = [n for n, line in enumerate(lines) if "task.append" in line]
    for first, second in itertools.pairwise(appends):
        name = lines[first].split("=")[0].strip()
        if re.search(rf"{name}\b", lines[second].split("=", 1)[1]):
            continue
        swapped = list(lines)
        swapped[first], swapped[second] = swapped[second], swapped[first]
        yield "swap", "\n".join(swapped)
    for number in appends:
        for to in ("[0:0]", "[3:3]"):
            moved = list(lines)
            moved[number] = re.sub(r"to \[\d+:\d+\]", f"to {to}", moved[number])
            yield "place", "\n".join(moved)


def test_mutants_of_the_text_that_go_wrong_are_rejected():
    found = Counter()
    for seed in range(40, 46):
        program = RandomGraph(seed, 9, batch=False)
        model = program.model()
        for level in ("graph", "tensor", "task", "schedule"):
            bring(model, level)
        text = str(model.module)
        assert not rejected(text)
        for kind, mutant in itertools.islice(mutants(text), 20):
            refused = rejected(mutant)
            found[kind, refused] += 1
            if not refused:
                assert not goes_wrong(mutant, model, program, tries=2), mutant
    # Each kind was refused now and then, and what was let through ran right.
    assert all(found[kind, True] for kind in ("wait", "offset", "swap", "place")), found
