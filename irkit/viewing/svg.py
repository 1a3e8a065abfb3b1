"""A schedule as one static SVG picture: vEUs as rows, rTasks as bars, waits hatched, idle time empty."""

from __future__ import annotations

from html import escape

import numpy as np

from irkit.viewing.timeline import Timeline

WIDTH, LEFT, RIGHT = 1280, 64, 24
# Tableau's ten colours and their light companions: neighbours differ in lightness as well as hue.
COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f",
    "#ff9da7", "#79706e", "#a0cbe8", "#ffbe7d", "#8cd17d", "#ff9d9a", "#86bcb6", "#f1ce63",
    "#d4a6c8", "#d7b5a6", "#499894", "#bab0ac",
)  # fmt: skip
# Below this many rTasks every bar can be pointed at for its name.
POINTED = 3000
LEGEND = 24


def colour(kernel: int) -> str:
    """The colour of rOperator number `kernel`."""
    return COLOURS[kernel % len(COLOURS)]


def microseconds(nanoseconds: float) -> str:
    """As a person writes it."""
    us = nanoseconds / 1e3
    return f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.3g} µs"


def ticks(duration: float, about: int = 10) -> list[float]:
    """Round times, in ns, from 0 to `duration`."""
    if duration <= 0:
        return [0.0]
    step = 10 ** np.floor(np.log10(duration / about))
    step *= next(f for f in (1, 2, 5, 10) if duration / (step * f) <= about)
    return [float(t) for t in np.arange(0, duration * (1 + 1e-9), step)]


def schedule_svg(timelines: list[Timeline], title: str) -> str:
    """One panel per timeline, one above the other, on one scale of time."""
    longest = max(one.duration for one in timelines)
    parts = [f'<text x="{LEFT}" y="28" class="title">{escape(title)}</text>']
    y = 48.0
    for one in timelines:
        text, y = _panel(one, y, longest)
        parts.append(text)
    legend, y = _legend(timelines[-1], y)
    parts.append(legend)
    return "\n".join([_head(y), *parts, "</svg>"]) + "\n"


def _head(height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" font-family="sans-serif" font-size="12">\n'
        "<style>.title{font-size:17px;font-weight:bold}.panel{font-weight:bold}"
        ".soft{fill:#666}.row{fill:#f2f2f0}.grid{stroke:#d8d8d4;stroke-width:1}</style>\n"
        '<defs><pattern id="wait" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="5" height="5" fill="#fff"/>'
        '<rect width="2" height="5" fill="#b8b4ae"/></pattern></defs>\n'
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="#fff"/>'
    )


def _panel(one: Timeline, y: float, longest: float) -> tuple[str, float]:
    """Rows, bars and axis of one timeline; and where it ends."""
    pitch = max(4.0, min(34.0, 560 / one.veus))
    scale = (WIDTH - LEFT - RIGHT) / max(longest, 1e-9)
    shares = "   ".join(f"{name} {100 * share:.0f} %" for name, share in one.totals().items())
    parts = [
        f'<text x="{LEFT}" y="{y + 12:.1f}" class="panel">{escape(one.title)}</text>',
        f'<text x="{WIDTH - RIGHT}" y="{y + 12:.1f}" text-anchor="end" class="soft">'
        f"{len(one.task)} {one.bars} in {microseconds(one.duration)}   {shares}</text>",
    ]
    top, bottom = y + 22, y + 22 + pitch * one.veus
    every = max(1, round(14 / pitch))
    for veu in range(one.veus):
        at = top + veu * pitch
        parts.append(
            f'<rect x="{LEFT}" y="{at:.1f}" width="{WIDTH - LEFT - RIGHT}" '
            f'height="{pitch * 0.86:.1f}" class="row"/>'
        )
        if veu % every == 0:
            parts.append(
                f'<text x="{LEFT - 6}" y="{at + pitch / 2 + 4:.1f}" text-anchor="end" class="soft">'
                f"{escape(one.row_name(veu))}</text>"
            )
    for t in ticks(longest):
        x = LEFT + t * scale
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" class="grid"/>'
            f'<text x="{x:.1f}" y="{bottom + 14:.1f}" text-anchor="middle" class="soft">'
            f"{microseconds(t) if t else '0'}</text>"
        )
    parts += _bars(one, top, pitch, scale)
    return "\n".join(parts), bottom + 34


def _bars(one: Timeline, top: float, pitch: float, scale: float) -> list[str]:
    x = LEFT + one.start * scale
    width = np.maximum((one.end - one.start) * scale, 0.3)
    y = top + one.veu * pitch
    height = pitch * 0.86
    waited = (one.start - one.arrived) * scale
    parts = [
        f'<path fill="url(#wait)" d="{_rectangles(x - waited, y, waited, height, waited > 0.2)}"/>'
    ]
    kernels = one.kernel
    for number in one.numbers(np.unique(kernels)):
        mine = kernels == number
        if len(one.task) > POINTED:
            text = escape(one.kernels[number].symbol)
            path = _rectangles(x, y, width, height, mine)
            parts.append(f'<path fill="{colour(number)}" d="{path}"><title>{text}</title></path>')
            continue
        parts += [
            f'<rect x="{x[i]:.2f}" y="{y[i]:.1f}" width="{width[i]:.2f}" height="{height:.1f}" '
            f'fill="{colour(number)}"><title>{escape(describe(one, i))}</title></rect>'
            for i in one.numbers(np.flatnonzero(mine))
        ]
        symbol = one.kernels[number].symbol
        fits = mine & (width > 7 * len(symbol) + 8) & (pitch > 13)
        parts += [
            f'<text x="{x[i] + 4:.1f}" y="{y[i] + pitch / 2 + 3:.1f}" font-size="11" fill="#fff">'
            f"{escape(symbol)}</text>"
            for i in one.numbers(np.flatnonzero(fits))
        ]
    return parts


def _rectangles(x: object, y: object, width: object, height: float, chosen: object) -> str:
    """The chosen rectangles as one path."""
    columns = (np.asarray(v, dtype=np.float64)[np.asarray(chosen)] for v in (x, y, width))
    return "".join(
        f"M{a:.2f} {b:.1f}h{w:.2f}v{height:.1f}h-{w:.2f}z"
        for a, b, w in zip(*(c.tolist() for c in columns), strict=True)
    )


def describe(one: Timeline, row: int) -> str:
    """An rTask in words."""
    append = int(one.append[row])
    kernel, step = one.kernels[one.steps[append].kernel], one.steps[append]
    took = microseconds(float(one.end[row] - one.start[row]))
    waited = microseconds(float(one.start[row] - one.arrived[row]))
    return (
        f"@{kernel.symbol} rTask {int(one.task[row])}, append {append}, wave {step.wave}\n"
        f"{kernel.rkernel}: {took} after {waited} of waiting\nfrom {kernel.sources}"
    )


def _legend(one: Timeline, y: float) -> tuple[str, float]:
    """Colours of the rOperators that take longest."""
    kernels, took = one.kernel, one.end - one.start
    total = max(float(took.sum()), 1e-9)
    share = {int(k): float(took[kernels == k].sum()) / total for k in np.unique(kernels)}
    order = sorted(share, key=lambda k: -share[k])
    parts: list[str] = []
    for place, number in enumerate(order[:LEGEND]):
        column, line = place % 3, place // 3
        at, down = LEFT + column * 400, y + 10 + line * 20
        kernel = one.kernels[number]
        text = f"@{kernel.symbol}  {kernel.rkernel}  {100 * share[number]:.1f} %"
        parts.append(
            f'<rect x="{at}" y="{down - 10:.1f}" width="12" height="12" fill="{colour(number)}"/>'
            f'<text x="{at + 18}" y="{down:.1f}">{escape(text)}</text>'
        )
    lines = -(-min(len(order), LEGEND) // 3)
    down = y + 10 + lines * 20
    more = f", {len(order) - LEGEND} rOperators more" if len(order) > LEGEND else ""
    parts.append(
        f'<rect x="{LEFT}" y="{down - 10:.1f}" width="12" height="12" fill="url(#wait)"/>'
        f'<text x="{LEFT + 18}" y="{down:.1f}">waiting; empty: idle{more}</text>'
    )
    return "\n".join(parts), down + 20
