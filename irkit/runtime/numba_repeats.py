"""What Numba finds again and again while it compiles what irkit emitted, found once or not at all.

Emitted text is long and plain: a few operators and intrinsics, on a few types, called a thousand times, and
no generator, `with` or lifted loop. What is here takes the place of Numba's own while this process compiles
such text, and is taken back. It answers as Numba would.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, cast

_ONE = threading.RLock()
"""Held meanwhile: what is put in place is the whole process's."""

CPU = ("numba.core", "numba.core.typing")
CUDA = ("numba.cuda.core", "numba.cuda.typing")
"""Where Numba has what it compiles by, and what it types calls by, for either target."""


@contextmanager
def nothing_twice(compiler: str, typing: str) -> Generator[None]:
    """Compile emitted text by the packages that `CPU` or `CUDA` names."""
    with _ONE, ExitStack() as placed:
        try:
            replacements = [
                (owner, name, getattr(owner, name), made)
                for owner, name, made in _replacements(compiler, typing)
            ]
        except (ImportError, AttributeError):
            # A Numba that is made otherwise compiles as it does, which takes longer.
            replacements = []
        for owner, name, was, made in replacements:
            placed.callback(setattr, owner, name, was)
            setattr(owner, name, made)
        yield


def _replacements(compiler: str, typing: str) -> Iterator[tuple[Any, str, Any]]:
    """Owners, names, and what takes the place of what they have there."""
    post, analysis = (import_module(f"{compiler}.{name}") for name in ("postproc", "analysis"))
    yield post.PostProcessor, "run", _lifetimes_when_asked(post)
    yield analysis, "compute_live_map", live_map
    functions = import_module("numba.core.types.functions").BaseFunction
    flags: Any = import_module("numba.core.targetconfig").ConfigStack
    yield functions, "get_call_type", _typed_once(functions.get_call_type, flags.top_or_none)
    config: Any = import_module(f"{compiler}.targetconfig").TargetConfig
    yield config, "__eq__", _equal_as_set(config.__eq__)
    yield config, "__hash__", _hash_of_names()
    ir: Any = import_module(f"{compiler}.ir")
    yield ir.Inst, "_rec_list_vars", _listed_by_kind(ir, ir.Inst._rec_list_vars)
    context: Any = import_module(f"{compiler}.base").BaseContext
    yield context, "get_abi_sizeof", _sized_once(context.get_abi_sizeof)
    mixin: Any = import_module(f"{typing}.templates")._TemplateTargetHelperMixin
    yield mixin, "_get_target_registry", looked_up_once(mixin._get_target_registry)


def _lifetimes_when_asked(post: Any) -> Callable[..., None]:
    """Behind most passes Numba finds which variables live at the beginning of each block, for generators and
    object mode alone, both of which are lowered behind one that is left as it is. All else asks for lifetimes
    where it needs them."""
    whole, canonical = post.PostProcessor.run, post.transforms.canonicalize_cfg
    lifetimes = post.VariableLifetime

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        function = self.func_ir
        if emit_dels or function.is_generator:
            whole(self, emit_dels, extend_lifetimes)
            return
        function.blocks = canonical(function.blocks)
        function.variable_lifetime = lifetimes(function.blocks)
        function.generator_info = None

    return run


def live_map(
    cfg: Any,
    blocks: Mapping[int, Any],
    used: Mapping[int, Iterable[str]],
    defined: Mapping[int, Iterable[str]],
) -> dict[int, set[str]]:
    """The variables that live at the entry of each block: Numba's `compute_live_map`, whose sets are bits of
    an integer here. That something changed is seen where it does, not by the lengths of all sets."""
    numbers: dict[str, int] = {}

    def bits(names: Iterable[str]) -> int:
        return sum(1 << numbers.setdefault(name, len(numbers)) for name in names)

    uses, defines = ({at: bits(names[at]) for at in blocks} for names in (used, defined))
    after = {at: [block for block, _ in cfg.successors(at)] for at in blocks}
    before = {at: [block for block, _ in cfg.predecessors(at)] for at in blocks}
    reach: dict[int, int] = defaultdict(int)
    changed = True
    while changed:
        changed = False
        for at in blocks:
            reach[at] |= uses[at] | defines[at]
            for block in after[at]:
                changed |= bool(reach[at] & ~reach[block])
                reach[block] |= reach[at]
    live, changed = dict(uses), True
    while changed:
        changed = False
        for at in reversed(blocks):
            for block in before[at]:
                found = live[at] & reach[block] & ~defines[block] & ~live[block]
                changed |= bool(found)
                live[block] |= found
    names = list(numbers)
    return {at: {names[n] for n in _ones(found)} for at, found in live.items()}


def _ones(bits: int) -> Iterator[int]:
    """The places of ones."""
    digits = f"{bits:b}"[::-1]
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)


def _typed_once(
    whole: Callable[..., Any], flags: Callable[[], Any]
) -> Callable[[Any, Any, Any, Any], Any]:
    """What a function of Numba's own, or an intrinsic, yields for arguments of some types: Numba goes through
    all its templates for every call. That hangs on the types, literals among them, and on the flags that
    what is compiled for it would have."""
    known: dict[tuple[Any, ...], Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        key = self, context, tuple(args), tuple(dict(kws).items()), flags()
        if key not in known:
            known[key] = whole(self, context, args, kws)
        return known[key]

    return get_call_type


def _equal_as_set(whole: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Flags of which the same are set are equal; of others it is asked what they are by default."""

    def equal(self: Any, other: Any) -> Any:
        same = type(self) is type(other) and self._values == other._values
        return True if same else whole(self, other)

    return equal


def _hash_of_names() -> Callable[[Any], int]:
    """Numba makes the hash of flags of their names alone, which are those of their class."""
    known: dict[Any, int] = {}

    def hashed(self: Any) -> int:
        kind: Any = self.__class__
        if kind not in known:
            known[kind] = hash(tuple(sorted(self.values())))
        return known[kind]

    return hashed


def _listed_by_kind(
    ir: Any, whole: Callable[[Any, Any], list[Any]]
) -> Callable[[Any, Any], list[Any]]:
    """Numba looks for the variables of an instruction in all that it has, most of which are names and places
    in a file: of these the kind says that there are none."""
    known: dict[Any, bool] = {}
    variable = ir.Var
    kind_of = cast(Callable[[Any], Any], type)

    def bare(kind: Any) -> bool:
        if kind not in known:
            known[kind] = not issubclass(kind, (variable, ir.Inst, list, tuple, dict))
        return known[kind]

    def listed(self: Any, value: Any) -> list[Any]:
        kind = kind_of(value)
        if kind is not dict and kind is not list and kind is not tuple:
            return [] if bare(kind) else whole(self, value)
        found: list[Any] = []
        for inner in value.values() if kind is dict else value:
            kind = kind_of(inner)
            if kind is variable:
                found.append(inner)
            elif not bare(kind):
                found += self._rec_list_vars(inner)
        return found

    return listed


def _sized_once(whole: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
    """How large a type of LLVM's is: Numba has it parsed for every variable, for debuggers."""
    known: dict[tuple[Any, Any], int] = {}

    def get_abi_sizeof(self: Any, ty: Any) -> int:
        key = self, ty
        if key not in known:
            known[key] = whole(self, ty)
        return known[key]

    return get_abi_sizeof


def looked_up_once(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """For every call of an intrinsic Numba looks through all registries for what is new before it says which
    one is the target's. The answer stays the same; what is new is looked for where a function begins and
    where an implementation is missing."""
    known: dict[tuple[str, Any], Any] = {}

    def registry(template: Any, reason: str) -> Any:
        key = template.metadata.get("target", "generic"), template.context
        if key not in known:
            known[key] = look_up(template, reason)
        return known[key]

    return registry
