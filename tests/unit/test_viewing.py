"""Timelines, traces and pictures of schedules; the page of a pipeline."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import irkit
from benchmarks.models import lstm_stack, small_cnn
from irkit.driver.tools.opt import OptTool
from irkit.driver.tools.run import RunTool
from irkit.viewing.chrome import chrome_trace
from irkit.viewing.page import schedule_page
from irkit.viewing.passes import COMPARED, PassesPage, differences, op_changes
from irkit.viewing.svg import POINTED, schedule_svg, ticks
from irkit.viewing.timeline import Kernel, Step, Timeline


@pytest.fixture(scope="module")
def program():
    return irkit.compile(small_cnn(), target="cpu")


@pytest.fixture(scope="module")
def timelines(program):
    x = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)
    return program.timelines([x])


def ends_of(one, append):
    return one.end[one.append == append]


def test_what_is_measured_keeps_the_schedule(timelines):
    planned, measured = timelines
    assert (planned.title, measured.title) == ("planned", "measured, persistent")
    for one in timelines:
        assert (one.arrived <= one.start).all()
        assert (one.start <= one.end).all()
        assert one.arrived.min() == 0
        assert sum(one.totals().values()) == pytest.approx(1)
        # Every rTask once, and nothing before what it waits for.
        assert len({*zip(one.append, one.task, strict=True)}) == len(one.task)
        for number, step in enumerate(one.steps):
            for source in step.waits:
                assert ends_of(one, source).max() <= one.start[one.append == number].min()
    assert sorted(planned.append) == sorted(measured.append)


@pytest.mark.parametrize("mode", ["serial", "per-wave"])
def test_other_modes(program, mode):
    x = np.zeros((1, 3, 16, 16), np.float32)
    measured = program.timelines([x], mode)[1]
    assert len(measured.task) == len(program.timelines()[0].task)
    assert (measured.end > measured.start).all()
    if mode == "serial":
        assert set(measured.veu) == {0}
    with pytest.raises(irkit.UnsupportedError, match="'fast': expected serial"):
        program.timelines([x], "fast")


def test_chrome_trace(timelines):
    trace = json.loads(chrome_trace(timelines, {"graph": 0.5, "emit": 0.25}))
    events = trace["traceEvents"]
    assert {e["ph"] for e in events} >= {"X", "M", "s", "f"}
    tasks = [e for e in events if e.get("cat") == "rtask"]
    assert len(tasks) == sum(len(one.task) for one in timelines)
    assert all({"ts", "dur", "pid", "tid", "name"} <= e.keys() for e in tasks)
    assert {e["name"] for e in tasks} == {k.symbol for k in timelines[0].kernels}
    starts, finishes = ([e for e in events if e["ph"] == p] for p in "sf")
    assert [e["id"] for e in starts] == [e["id"] for e in finishes]
    stages = [e for e in events if e.get("cat") == "compile"]
    assert [(e["name"], e["ts"], e["dur"]) for e in stages] == [
        ("graph", 0.0, 500000.0), ("emit", 500000.0, 250000.0)
    ]  # fmt: skip


def bars(svg):
    """Rectangles that stand for one rTask each."""
    space = "{http://www.w3.org/2000/svg}"
    return [
        r for r in ET.fromstring(svg).iter(f"{space}rect") if r.find(f"{space}title") is not None
    ]


def test_svg(timelines):
    svg = schedule_svg(timelines, "a <title>")
    assert len(bars(svg)) == sum(len(one.task) for one in timelines)
    assert "a &lt;title&gt;" in svg
    assert "measured, persistent" in svg


def synthetic(tasks, veus=132):
    """A timeline of many rTasks of two rOperators."""
    numbers = np.arange(tasks)
    start = (numbers // veus) * 10.0
    steps = tuple(Step(n % 2, n, ()) for n in range(2))
    kernels = (Kernel("a", "map.rows", "graph.add"), Kernel("b", "gemm.dot", "graph.gemm"))
    return Timeline("planned", veus, kernels, steps, numbers % 2, numbers // 2, numbers % veus,
                    start, start + 1, start + 9)  # fmt: skip


def test_many_rtasks_stay_a_small_file():
    one = synthetic(15000)
    assert len(one.task) > POINTED
    svg = schedule_svg([one], "many")
    assert not bars(svg)
    assert len(svg) < 1_500_000
    assert len(schedule_page([one], "many")) < 1_500_000


def test_page_loads_nothing(timelines):
    page = schedule_page(timelines, "schedule")
    assert not re.search(r"(src|href)\s*=|@import|https?://", page)
    data = json.loads(re.search(r"DATA=(\[.*\]);", page)[1])
    assert [len(d["task"]) for d in data] == [len(one.task) for one in timelines]


def test_ticks():
    assert ticks(0) == [0.0]
    assert ticks(1000) == [100.0 * i for i in range(11)]
    assert len(ticks(730_000)) <= 11


# The page of a pipeline


def test_differences():
    assert differences(["a", "b", "c"], ["a", "x", "c"]) == [[1, 2, 1, 2]]
    assert differences(["a"], ["a"]) == []
    assert differences([], ["a"]) == [[0, 0, 0, 1]]
    old, new = [str(i) for i in range(COMPARED)], [str(-i) for i in range(COMPARED)]
    assert differences(["h", *old, "t"], ["h", *new, "t"]) == [[2, COMPARED + 1, 2, COMPARED + 1]]


def test_op_changes():
    old = ["%0 = graph.relu %x : (t) -> t", "func.return %0", '%1 = "te.gather"(%0) : () -> ()']
    assert op_changes(old, ["func.return %x"]) == {"graph.relu": -1, "te.gather": -1}


def test_page_of_a_pipeline(monkeypatch):
    page = PassesPage("title")
    page.start("a\nb")
    page.add("first{x=1}", 0.001, "a\nc")
    page.add("second", 0.002, "a\nc")
    page.add("third", 0.0, "a </script>", "this pass failed")
    text = page.html()
    assert "first{x=1}" in text
    assert "a </script>" not in text
    assert [(s["before"], s["after"]) for s in page.steps] == [(0, 1), (1, 1), (1, 2)]
    monkeypatch.setattr("irkit.viewing.passes.LIMIT_BYTES", 1)
    page.add("fourth", 0.0, "x\n" * 100)
    assert page.left_out == 1


# The tools


@pytest.fixture
def module(tmp_path):
    import onnx

    from irkit.driver.tools.translate import TranslateTool

    onnx.save(lstm_stack(2, 8, 8, 3), tmp_path / "m.onnx")
    path = tmp_path / "m.mlir"
    assert TranslateTool().main([str(tmp_path / "m.onnx"), "-o", str(path)]) == 0
    return path


def run(tool, *arguments):
    stderr = io.StringIO()
    status = tool(stdout=io.StringIO(), stderr=stderr).main([str(a) for a in arguments])
    return status, stderr.getvalue()


def test_run_tool_writes_trace_and_picture(module, tmp_path):
    trace, svg = tmp_path / "t.json", tmp_path / "v.svg"
    status, errors = run(RunTool, module, "--trace", trace, "--schedule-view", svg)
    assert (status, errors) == (0, "")
    json.loads(trace.read_text())
    ET.fromstring(svg.read_text())


def test_opt_tool_draws_the_plan_and_the_passes(module, tmp_path):
    page, html = tmp_path / "v.html", tmp_path / "p.html"
    arguments = ["--to=schedule", "--device=test4", "--schedule-view", page, "--html", html]
    assert run(OptTool, module, *arguments) == (0, "")
    assert "recurrent_cell" in page.read_text()
    text = html.read_text()
    for name in ("unroll-recurrence", "partition-rtasks{device=", "verify-schedule"):
        assert name in text


def test_errors_are_one_message(module, tmp_path):
    for tool, arguments, message in (
        (RunTool, ["--schedule-view", "x.png"], "expected a file .svg or .html, got 'x.png'"),
        (RunTool, ["--trace", "t.json", "--level=graph"], "need --level=numba, got graph"),
        (RunTool, ["--trace", str(tmp_path / "no" / "t.json")], "cannot write"),
        (OptTool, ["--schedule-view", "x.svg"], "needs a scheduled module, this is at the graph"),
        (OptTool, ["--html", str(tmp_path / "no" / "p.html")], "cannot write"),
    ):
        status, errors = run(tool, module, *arguments)
        assert status == 1, errors
        assert message in errors
        assert errors.count("error:") == 1


def test_a_failed_pass_is_on_the_page(module, tmp_path):
    html = tmp_path / "p.html"
    status, _ = run(OptTool, module, "-p", "canonicalize,plan-memory", "--html", html)
    assert status == 1
    assert "this pass failed" in html.read_text()
