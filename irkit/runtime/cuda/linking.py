"""Entry kernels of an emitted module over rKernels that were compiled by themselves.

Numba compiles entries alone (`entry_code.py`), which call rKernels as functions of other modules; NVVM links
what each calls into it and inlines it. Of the walkers, which call all, it sees the calls alone: rKernels
stand apart from them (`apart.py`), or their instructions are put in the place of calls (`embedded.py`).
Entries go through NVVM and the assembler in groups, side by side, each as soon as it and the rKernels that
it calls are there: neither holds a lock of Python's.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from irkit.processors import usable_cores
from irkit.runtime import code_store
from irkit.runtime.cuda.apart import (
    entered,
    joined,
    stands_apart,
    taken_in,
    with_loops_once,
    with_own_thread,
)
from irkit.runtime.cuda.assembling import assemble
from irkit.runtime.cuda.double_constants import in_constant_memory
from irkit.runtime.cuda.embedded import Embeddable, embeddable, embedded, with_aligned
from irkit.runtime.cuda.entry_code import modules_of
from irkit.runtime.cuda.inline_division import without_calls
from irkit.runtime.cuda.numba_device import of_numba
from irkit.runtime.cuda.together import assembled, side_by_side
from irkit.runtime.cuda.unit_code import (
    aligned,
    called,
    context,
    declarations,
    entries_of,
    ir_of,
    linked_name,
)
from irkit.runtime.forms import Form, form_of
from irkit.runtime.side_by_side import Request, compile_units
from irkit.runtime.units import Parts, key_of

GROUP = 2
"""Entries of single rOperators that go through NVVM together."""
TOGETHER = 4
"""Groups of them that are lowered by one process, which reads the module's text for them."""
_LINKED = re.compile(r"\b(irkit_[0-9a-f]{24}_)\w+")

T = TypeVar("T")


Code = tuple[str, bytes, str]
"""PTX, machine code, and the assembler's log."""


def linked_code(parts: Parts, entries: Sequence[str], threads: int, arch: str) -> list[Code]:
    """Code of groups that have the entry kernels of a module between them, under their Python names."""
    units = _Units(parts, arch)
    with ThreadPoolExecutor(usable_cores()) as pool:
        linker = _Linker(units, arch, threads, pool, aligned(parts), side_by_side(parts.rest))
        requests = _entry_requests(parts, entries, threads, arch)
        made: dict[str, list[Callable[[], Code]]] = {}

        def lowered(request: Request, payload: bytes) -> None:
            link = linker.walkers if request.symbol in _walkers(entries) else linker.group
            made[request.symbol] = [link(modules) for modules in modules_of(payload)]

        try:
            units.compile(requests, lowered, linker.units_are_there)
            return [code() for request in requests for code in made[request.symbol]]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _walkers(entries: Sequence[str]) -> list[str]:
    return [e for e in entries if not e.startswith("op_")]


def _entry_requests(parts: Parts, entries: Sequence[str], threads: int, arch: str) -> list[Request]:
    """Requests for the IR of entries, by the first of each: of walkers together, which share what they call
    where that is not inlined, and of groups of others."""
    alone = [e for e in entries if e.startswith("op_")]
    groups = [alone[first : first + GROUP] for first in range(0, len(alone), GROUP)]
    together = [groups[first : first + TOGETHER] for first in range(0, len(groups), TOGETHER)]
    if walkers := _walkers(entries):
        together.insert(0, [walkers])
    text, declared = f"{parts.header}\n\n{parts.rest}", declarations(parts)
    return [
        Request(
            batch[0][0],
            "cuda entries",
            (text, declared, batch, threads, arch),
            len(text) * sum(map(len, batch)) // len(entries),
        )
        for batch in together
    ]


def nvvm_ptx(texts: Sequence[str], arch: str) -> str:
    """PTX of IR modules that are linked together."""
    nvvm: Any = of_numba("numba.cuda.cudadrv.nvvm")
    ptx: bytes = nvvm.compile_ir(list(texts), opt=3, arch=arch.replace("sm_", "compute_"))
    return ptx.decode().strip("\x00").strip()


class _Units:
    """The IR of a module's rKernels, by the prefix of its functions' names: from the cache, or made side by
    side, once for all of a form."""

    def __init__(self, parts: Parts, arch: str) -> None:
        here, pointers = context(arch), called(parts.rest)
        self._texts: dict[str, tuple[str, Form]] = {}
        self._of_key: dict[str, list[str]] = {}
        self._requests: dict[str, Request] = {}
        self._lowered: dict[str, bytes] = {}
        for text, unit in {unit.text: unit for unit in parts.units}.items():
            form, entries = form_of(text), entries_of(unit, pointers)
            key, prefix = key_of(form.text, here + repr(entries).encode()), linked_name(text, "")
            self._texts[prefix] = text, form
            self._of_key.setdefault(key, []).append(prefix)
            arguments = (form.text, arch, entries)
            # Slots make a form longer, and take no time.
            request = Request(unit.symbol, "cuda", arguments, len(text), key)
            self._requests.setdefault(key, request)

    def compile(
        self,
        others: Sequence[Request],
        made: Callable[[Request, bytes], None],
        there: Callable[[Sequence[str]], None],
    ) -> None:
        """Make what is not kept, and what `others` ask for. Any thread tells `there` what is, and `made` what
        came of another request."""
        missing: list[Request] = []
        for key, request in self._requests.items():
            payload = code_store.kept(key)
            if payload is None:
                missing.append(request)
            else:
                self._found(key, payload, there)

        def done(request: Request, payload: bytes) -> Sequence[Request]:
            if request.key:
                code_store.keep(request.key, payload)
                self._found(request.key, payload, there)
            else:
                made(request, payload)
            return ()

        compile_units([*missing, *others], done)
        if missing:
            code_store.prune()

    def _found(self, key: str, payload: bytes, there: Callable[[Sequence[str]], None]) -> None:
        prefixes = self._of_key[key]
        self._lowered |= dict.fromkeys(prefixes, payload)
        there(prefixes)

    def ir(self, prefix: str) -> list[str]:
        """The IR modules of a unit that is there."""
        text, form = self._texts[prefix]
        return ir_of(self._lowered[prefix], form, text)


class _Functions(NamedTuple):
    """A unit's functions for walkers: PTX where they stand apart, blocks where they are embedded; neither
    where NVVM is to take them in."""

    ptx: str
    block: Embeddable | None = None


class _Linker:
    """Takes entries to machine code in threads, each once the units that it needs are there."""

    def __init__(
        self,
        units: _Units,
        arch: str,
        threads: int,
        pool: ThreadPoolExecutor,
        aligned: Mapping[str, Sequence[bool]],
        wanted: Mapping[str, int],
    ) -> None:
        self._units, self._arch, self._threads, self._pool = units, arch, threads, pool
        self._aligned, self._wanted = aligned, wanted
        self._lock = threading.Lock()
        self._there: set[str] = set()
        self._waiting: list[tuple[frozenset[str], Callable[[], None]]] = []

    def units_are_there(self, prefixes: Sequence[str]) -> None:
        """Begin what has waited for these last."""
        with self._lock:
            self._there.update(prefixes)
            self._begin()

    def group(self, texts: Sequence[str]) -> Callable[[], Code]:
        """What gives the code of entries, by their IR modules, once it is made."""
        needed = sorted({prefix for text in texts for prefix in _LINKED.findall(text)})

        def code() -> Code:
            ptx = self._ptx([*texts, *(m for prefix in needed for m in self._units.ir(prefix))])
            return assembled(in_constant_memory(ptx), self._wanted, self._threads, self._arch)

        return self._when(needed, code).result

    def walkers(self, texts: Sequence[str]) -> Callable[[], Code]:
        """As `group`, of entries that call the units as functions, where these stand apart."""
        names: dict[str, list[str]] = {}
        for found in dict.fromkeys(m for text in texts for m in _LINKED.finditer(text)):
            known = names.setdefault(found[1], [])
            if found[0] not in known:
                known.append(found[0])
        made = {
            prefix: self._when([prefix], lambda p=prefix: self._function(p, names[p]))
            for prefix in sorted(names)
        }

        def code() -> Code:
            found = {prefix: future.result() for prefix, future in made.items()}
            apart = {p: f.ptx for p, f in found.items() if f.block is None and f.ptx}
            blocks = {p: f.block for p, f in found.items() if f.block is not None}
            ptx = embedded(self._taken_in(texts, names, {*apart, *blocks}), blocks.values())
            if ptx is None:
                ptx = self._taken_in(texts, names, {*apart})
            ptx = joined(ptx, list(apart.values()), [name for p in apart for name in names[p]])
            ptx = in_constant_memory(ptx)
            # Side by side the assembler allots registers to each function by itself: of those that stand
            # apart it does so anyway, others would take more.
            return ptx, *assemble(ptx, self._arch, side_by_side=bool(apart))

        return code

    def _taken_in(
        self, texts: Sequence[str], names: Mapping[str, Sequence[str]], others: Set[str]
    ) -> str:
        """PTX of walkers that have taken in all units but `others`."""
        inside = [p for p in names if p not in others]
        units = with_own_thread((m for p in inside for m in self._units.ir(p)), self._threads)
        called_by_name = [name for p in inside for name in names[p]]
        return self._ptx(taken_in([*texts, *with_loops_once(units)], called_by_name))

    def _function(self, prefix: str, names: Sequence[str]) -> _Functions:
        """What NVVM makes of a unit's functions by themselves."""
        modules = self._units.ir(prefix)
        if stands_apart(modules):
            return _Functions(self._ptx(entered(modules, names)))
        modules = with_aligned(with_own_thread(modules, self._threads), self._aligned)
        ptx = self._ptx(entered(with_loops_once(modules), names))
        return _Functions("", embeddable(ptx, names))

    def _ptx(self, texts: Sequence[str]) -> str:
        return without_calls(nvvm_ptx(texts, self._arch))

    def _when(self, needed: Sequence[str], work: Callable[[], T]) -> Future[T]:
        """What comes of work that is begun once units are there."""
        future: Future[T] = Future()

        def begin() -> None:
            self._pool.submit(_fulfil, future, work)

        with self._lock:
            self._waiting.append((frozenset(needed), begin))
            self._begin()
        return future

    def _begin(self) -> None:
        ready = [begin for needed, begin in self._waiting if needed <= self._there]
        self._waiting = [(n, begin) for n, begin in self._waiting if not n <= self._there]
        for begin in ready:
            begin()


def _fulfil(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
