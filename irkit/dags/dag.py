"""`irkit.dag()`: launches in program order become a DAG, by what they read and write."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import numpy as np

from irkit.dags.capture import Launching, capturing
from irkit.dags.device import DagDevice
from irkit.dags.eager import Eager
from irkit.dags.host_calls import HostCall, HostProgram
from irkit.dags.kernels import NumbaLaunch, RawLaunch, sizes_of
from irkit.dags.leases import ended
from irkit.dags.located import Located, asked_for, check_copy, locate
from irkit.dags.origins import caller
from irkit.dags.plans import Plan
from irkit.dags.programs import ProgramSource, source_of, why_not_in_a_stream
from irkit.dags.repeated import Repeats, key_of
from irkit.dags.steps import HOST_BUFFER, Step, Stepper
from irkit.dags.works import Launch
from irkit.errors import IrkitError, UnsupportedError
from irkit.schedule.host.model import HostTask, Use
from irkit.schedule.host.planning import STREAMS


def _nothing() -> None:
    """What the host does with an array is its own affair."""


def _located(array: Any) -> Located:
    found = locate(array)
    assert found is not None
    return found


def _require(array: Any, name: str, origin: str) -> None:
    """Raises InvalidInputError for an array whose DAG was closed."""
    with _at(origin):
        if (problem := ended(array, name)) is not None:
            raise problem


@contextmanager
def _at(origin: str) -> Generator[None]:
    """Errors say the user's line."""
    try:
        yield
    except IrkitError as error:
        if f"({origin})" not in error.args[0]:
            error.args = (f"{origin}: {error.args[0]}", *error.args[1:])
        raise


def _numba_launch(configured: Any, arguments: tuple[Any, ...]) -> NumbaLaunch:
    grid, block = tuple(configured.griddim), tuple(configured.blockdim)
    return NumbaLaunch(arguments, configured.dispatcher, grid, block, configured.sharedmem)


class Dag:
    """Records launches of kernels, programs and host functions, or starts them as they come.

    Nothing is declared: what a Numba kernel reads and writes is inferred from its code, what a
    RawKernel does from its C signature. Host functions read and write their arrays, but for those that
    are read-only. Arrays of the host that kernels use are copied to the device, and back when the host
    needs them or the DAG ends.
    """

    def __init__(self, device: DagDevice, eager: bool = False, streams: int = STREAMS) -> None:
        self._device, self._limit = device, streams
        self._stepper = Stepper(device)
        self._eager = Eager(device, streams) if eager else None
        self._repeats = Repeats(self._stepper, device.checks) if eager else None
        self._steps: list[Step] = []
        self._plan: Plan | None = None
        self._open = ExitStack()
        self._recording, self._left = False, ""

    # -- the context

    def __enter__(self) -> Dag:
        if self._recording:
            raise UnsupportedError(f"{caller()}: launches are recorded by this DAG already")
        self._open.enter_context(capturing(self._captured))
        self._recording = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._open.close()
        self._recording = False
        if kind is not None:
            self._left = kind.__name__
        if self._left:
            self._abandon()
        if kind is not None:
            return
        self._require_sound()
        for step in self._stepper.home("the end of the DAG"):
            self._accept(step)
        if self._eager is not None:
            with Launching():
                self._eager.finish()
            self._stepper.close()

    def _abandon(self) -> None:
        """After an error: what was started ends before its memory goes."""
        if self._eager is None:
            return
        with Launching():
            self._eager.abandon()
        self._stepper.close()

    # -- launches

    def launch(self, kernel: Any, *arguments: Any, shared_bytes: int = 0) -> None:
        """Launch a kernel: `launch(kernel[grid, block], x, y)` of Numba's, or `launch(raw, grid, block,
        (x, y))` of CuPy's. Raises UnsupportedError where what it writes cannot be told.
        """
        if hasattr(kernel, "dispatcher"):
            self._captured(kernel, arguments)
            return
        if not hasattr(kernel, "code") or len(arguments) != 3:
            raise UnsupportedError(
                f"{caller()}: launch(kernel[grid, block], x, ...) or launch(raw_kernel, grid, block, "
                f"(x, ...)) is expected, got {type(kernel).__name__}"
            )
        grid, block, given = arguments
        self._take(RawLaunch(tuple(given), kernel, sizes_of(grid), sizes_of(block), shared_bytes))

    def call(self, function: Any, *arguments: Any, out: Any = None, **keywords: Any) -> None:
        """Call a Python function on the host; or a program of irkit's, whose outputs go to `out`: an
        array, or a tuple of them.

        A program that was compiled for a GPU is a task of a stream. One that cannot be (it was compiled for
        a CPU, it keeps state, it looks at its arrays' values) is run by the host.
        """
        targets: tuple[Any, ...] = (
            (*cast("Sequence[Any]", out),) if isinstance(out, (tuple, list)) else (out,)
        )
        source = source_of(function, arguments)
        runs = hasattr(function, "run") and hasattr(function, "ir")
        if source is not None and (not runs or why_not_in_a_stream(source) is None):
            self._program(source, (*arguments, *targets))
        elif runs:
            self._take(HostProgram((*arguments, *targets), function, len(arguments)))
        elif callable(function) and out is None:
            self._take(HostCall(arguments, function, keywords))
        else:
            raise UnsupportedError(
                f"{caller()}: a function or a program is called, out= of a program alone"
            )

    def _program(self, source: ProgramSource, arguments: Sequence[Any]) -> None:
        with _at(caller()):
            reason = why_not_in_a_stream(source)
            if reason is not None:
                raise UnsupportedError(f"the program cannot be a task of a stream: {reason}")
            launch = self._stepper.program(source, arguments)
        self._take(launch)

    def empty(self, shape: int | tuple[int, ...], dtype: Any = np.float64) -> Any:
        """A new array on the device, for what only kernels need: nothing is copied for it. It lasts as
        long as the DAG's `with`, or its plan."""
        origin = caller()
        with _at(origin):
            return self._stepper.empty(*asked_for(shape, dtype), origin)

    def staging(
        self, shape: int | tuple[int, ...], dtype: Any = np.float64
    ) -> np.ndarray[Any, Any]:
        """A new array of the host's that copies go to and from beside kernels: its pages are locked, as long
        as the DAG has its memory."""
        with _at(caller()):
            return self._stepper.memory.staging(*asked_for(shape, dtype))

    def copy(self, target: Any, source: Any) -> None:
        """Copy an array of the host's to one of the device, or back: just these bytes.

        Raises UnsupportedError but for one array on each side, both C-contiguous, of one dtype and as many
        bytes, the target to be written.
        """
        origin = caller()
        with _at(origin):
            to, of = locate(target), locate(source)
        if to is None or of is None or to.space == of.space:
            raise UnsupportedError(
                f"{origin}: copy expects an array of the host's and one on the device"
            )
        for array, name in ((target, "copy, target"), (source, "copy, source")):
            _require(array, name, origin)
        with _at(origin):
            check_copy(to, of)
        for step in self._stepper.copied(to, of, (target, source), origin):
            self._accept(step)

    def read(self, array: Any) -> np.ndarray[Any, Any]:
        """The elements of an array for the host: of a host array, itself; of one on the device, a new
        array.

        It waits for what writes the array, and for nothing else. In a DAG that records, the elements
        are there when a run of its plan has ended.
        """
        origin, located = caller(), locate(array)
        if located is None:
            raise UnsupportedError(f"{origin}: read expects an array, got {type(array).__name__}")
        _require(array, "read", origin)
        if located.space == "device":
            array, steps = self._stepper.fetch(array, located, origin)
        else:
            twin = self._stepper.twin_of(located)
            span = located.region().hull
            steps = [] if twin is None else self._stepper.to_host(span, twin, origin)
        with _at(origin):
            for step in steps:
                self._accept(step)
        if self._eager is not None:
            seen = Use(_located(array).region(HOST_BUFFER), True, False)
            task = HostTask("read", "function", (seen,), origin=origin)
            self._accept(Step(task, HostCall((), _nothing)))
        return array

    def _captured(self, configured: Any, arguments: tuple[Any, ...]) -> None:
        if self._repeats is None:
            self._take(_numba_launch(configured, arguments))
            return
        key = key_of(configured, arguments)
        steps = self._repeats.find(key, arguments)
        if steps is not None:
            self._again(steps)
            return
        last = self._take(_numba_launch(configured, arguments))
        self._repeats.keep(key, arguments, last)

    def _again(self, steps: Sequence[Step]) -> None:
        try:
            for step in steps:
                self._accept(step)
        except IrkitError as error:
            error.args = (f"{caller()}: {error.args[0]}", *error.args[1:])
            raise

    def _take(self, launch: Launch) -> Step:
        """What a launch takes; the last of its steps, the launch itself."""
        origin = caller()
        with _at(origin):
            steps = self._stepper.steps(launch, origin)
            for step in steps:
                self._accept(step)
        return steps[-1]

    def _accept(self, step: Step) -> None:
        if self._eager is None:
            self._steps.append(step)
            self._plan = None
            return
        self._require_sound()
        try:
            with Launching():
                self._eager.start(step)
        except BaseException as error:
            # What did not start may have been counted on. A function of the host left its arrays to others.
            self._left = "" if step.task.on_host else type(error).__name__
            raise

    def _require_sound(self) -> None:
        """Raises UnsupportedError after an error: results may be on the device alone, or nowhere."""
        if self._left:
            raise UnsupportedError(
                f"an error ended this DAG ({self._left}): begin another, once arrays are as they should be"
            )

    def wait(self) -> None:
        """In a DAG that starts launches as they come, wait for all of them. Raises DeviceError."""
        if self._eager is not None:
            self._eager.finish()

    # -- plans

    def close(self) -> None:
        """Give back all that it has of the device; its plans cannot be run from then on."""
        self._steps = []
        self._stepper.close()

    def plan(self) -> Plan:
        """All that was recorded until now, with streams and events, proved; arrays of the host have their
        results at its end. Raises UnsupportedError of a DAG that runs launches as they come, and of one
        whose recording an error ended."""
        if self._eager is not None:
            raise UnsupportedError("a DAG that starts launches as they come keeps none to plan")
        if self._left:
            raise UnsupportedError(
                f"recording this DAG was ended by an error ({self._left}): record it anew"
            )
        if self._plan is None:
            self._steps += self._stepper.home("the end of the DAG")
            self._plan = Plan(self._device, self._steps, self._limit, self._stepper.memory)
        return self._plan

    def run(self) -> None:
        """Run all that was recorded, once."""
        self.plan().run()

    def report(self) -> list[dict[str, Any]]:
        """What the plan's report says."""
        return self.plan().report()

    def kept(self) -> int:
        """How many things a DAG that starts launches as they come keeps of them."""
        return 0 if self._eager is None else self._eager.kept()
