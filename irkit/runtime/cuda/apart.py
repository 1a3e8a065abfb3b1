"""rKernels that stand apart in the image of the walkers: functions of PTX texts of their own.

With a call beside it the assembler runs all `wgmma` of a function one after another (ptxas C7509). So what
multiplies by warp groups is a function by itself there, which calls nothing. Each goes through NVVM
alone, side by side with the others, and the texts are joined before they are assembled.

All others are part of the kernel that walks: `embedded.py` puts their instructions there, or NVVM takes them
in (`taken_in`). By itself it leaves large ones functions, and what dispatches rTasks among them: each such
call saves and restores some fifty registers of every thread.
Nor may what rKernels compute of the thread's number be had once for all, before the walk
(`with_own_thread`): of many rKernels that is more than there are registers, and is stored and read again.
And loops stay as short as they are written (`with_loops_once`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

_WGMMA = "wgmma.mma_async"
_HEAD = re.compile(r".*?^\.address_size \d+\n", re.DOTALL | re.MULTILINE)
# What a text declares of functions and of shared memory that others define.
_DECLARED = re.compile(
    r"^\.extern \.func\s+(?:\([^)]*\)\s*)?([\w$]+)\s*\([^)]*\)\s*;\n", re.MULTILINE
)
_SHARED = re.compile(r"^\.extern \.shared [^;]*;\n", re.MULTILINE)
_THREAD = re.compile(
    r'^( *)(%\S+) = call i32 @"?llvm\.nvvm\.read\.ptx\.sreg\.tid\.x"?\(\)', re.MULTILINE
)
_BRANCH = re.compile(r"^ +br [^\n]*$", re.MULTILINE)
_METADATA = re.compile(r"^!(\d+) =", re.MULTILINE)
_LINKAGE = r"^(?:\.(?:visible|weak|common)\s+)*"
_DEFINED = (
    re.compile(_LINKAGE + r"\.func\s+(?:\([^)]*\)\s*)?([\w$]+)", re.MULTILINE),
    re.compile(
        _LINKAGE + r"\.(?:global|const|shared)\s[^;=]*?([\w$]+)(?:\[\d*\])*\s*[;=]", re.MULTILINE
    ),
)


def stands_apart(modules: Iterable[str]) -> bool:
    """Whether the walkers call an rKernel, of which these are the IR modules, and do not take it in."""
    return any(_WGMMA in module for module in modules)


def entered(modules: Iterable[str], names: Sequence[str]) -> list[str]:
    """IR modules whose functions of these names are there for others."""
    pattern = re.compile(
        r'define linkonce_odr (\S+ @"?(?:' + "|".join(map(re.escape, names)) + r')"?\()'
    )
    return [pattern.sub(r"define \1", module) for module in modules]


def taken_in(modules: Iterable[str], names: Iterable[str]) -> list[str]:
    """IR modules whose functions of these names, and what dispatches rTasks, are part of what calls them."""
    known = "|".join(map(re.escape, names)) or "(?!)"
    pattern = re.compile(
        rf'^(define linkonce_odr \S+ @"?(?:_ZN\d+irkit_emitted\d+run_task\w*|{known})"?\([^\n]*\))',
        re.MULTILINE,
    )
    return [pattern.sub(r"\1 alwaysinline", module) for module in modules]


def with_own_thread(modules: Iterable[str], threads: int) -> list[str]:
    """IR modules of rKernels that read the number of the thread, of so many in a block, where they run.

    The register is read by assembly without side effects: unlike the intrinsic's, LLVM knows no place beside
    its own where it might stand, so that nothing which is made of it leaves the rKernel. That it is small is
    all that is told of it.
    """
    most = (1 << (threads - 1).bit_length()) - 1

    def read(found: re.Match[str]) -> str:
        indent, name = found.groups()
        raw = f'{name[:-1]}.read"' if name.endswith('"') else f"{name}.read"
        return (
            f'{indent}{raw} = call i32 asm "mov.u32 $0, %tid.x;", "=r"() nounwind readnone\n'
            f"{indent}{name} = and i32 {raw}, {most}"
        )

    return [_THREAD.sub(read, module) for module in modules]


def with_loops_once(modules: Iterable[str]) -> list[str]:
    """IR modules of rKernels in which no loop of unknown trips has several copies of its body.

    A multiprocessor keeps some 128 KiB of instructions, of which the walk of a program has several times as
    many: what is read anew costs more there than what the copies save. Loops of known trips are unrolled
    as they were.
    """
    return [_loops_once(module) for module in modules]


def _loops_once(module: str) -> str:
    first = max((int(n) for n in _METADATA.findall(module)), default=-1) + 1
    added = [f'!{first} = !{{!"llvm.loop.unroll.runtime.disable"}}']

    def marked(branch: re.Match[str]) -> str:
        if "!llvm.loop" in branch[0]:
            return branch[0]
        own = first + len(added)
        added.append(f"!{own} = distinct !{{!{own}, !{first}}}")
        return f"{branch[0]}, !llvm.loop !{own}"

    return "\n".join([_BRANCH.sub(marked, module), *added, ""])


def joined(walkers: str, functions: Sequence[str], names: Iterable[str]) -> str:
    """One PTX text of the walkers and of texts with the functions `names` that these call."""
    if not functions:
        return walkers
    kept = set(names)
    pieces = [*(with_own_names(body_of(text), kept) for text in functions), body_of(walkers)]
    return together(head_of(walkers), [_without(piece, kept) for piece in pieces])


def together(head: str, pieces: Iterable[str]) -> str:
    """One PTX text of several without heads, which share the shared memory that they declare."""
    known = list(pieces)
    shared = dict.fromkeys(declared for piece in known for declared in _SHARED.findall(piece))
    return "\n".join([head, *shared, *(_SHARED.sub("", piece) for piece in known)])


def head_of(ptx: str) -> str:
    """What a PTX text begins with: version, target, size of addresses."""
    found = _HEAD.match(ptx)
    assert found is not None
    return found.group()


def body_of(ptx: str) -> str:
    """A PTX text without its head."""
    return _HEAD.sub("", ptx, count=1)


def _without(body: str, names: set[str]) -> str:
    """A text without declarations of functions that are defined in others."""
    return _DECLARED.sub(lambda found: "" if found[1] in names else found[0], body)


def with_own_names(body: str, names: set[str]) -> str:
    """A text in which all that it defines beside `names` has names that no other text has."""
    defined = {name for pattern in _DEFINED for name in pattern.findall(body)} - names
    if not defined:
        return body
    mark = hashlib.sha256(body.encode()).hexdigest()[:12]
    pattern = re.compile(
        r"(?<![\w$%.])(" + "|".join(map(re.escape, sorted(defined))) + r")(?![\w$])"
    )
    return pattern.sub(rf"\1_{mark}", body)
