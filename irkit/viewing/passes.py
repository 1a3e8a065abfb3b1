"""A pipeline as one HTML page: step through the passes, the IR before and after side by side."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from html import escape

# Above this many lines that differ, they are shown as one replaced block: comparing them takes a
# time that grows with the square.
COMPARED = 4000
# All texts together; what comes later is left out, and the page says so.
LIMIT_BYTES = 30_000_000


@dataclass
class PassesPage:
    """Collects the IR after each pass; equal texts are kept once."""

    title: str
    texts: list[list[str]] = field(default_factory=list[list[str]])
    steps: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    left_out: int = 0
    _size: int = 0

    def start(self, text: str) -> None:
        """The IR before the first pass."""
        self.texts.append(text.splitlines())

    def add(self, spec: str, seconds: float, text: str, note: str = "") -> None:
        """The IR after a pass; `spec` is its name with all options, `note` what went wrong."""
        lines = text.splitlines()
        changed = lines != self.texts[-1]
        if changed and self._size + len(text) > LIMIT_BYTES:
            self.left_out += 1
            lines = ["(left out: the page would be too large)"]
        before = len(self.texts) - 1
        edits: list[list[int]] = []
        if changed:
            self._size += len(text)
            edits = differences(self.texts[-1], lines)
            self.texts.append(lines)
        self.steps.append(
            {
                "spec": spec,
                "ms": round(seconds * 1e3, 2),
                "before": before,
                "after": len(self.texts) - 1,
                "edits": edits,
                "note": note,
                "ops": op_changes(self.texts[before], lines),
            }
        )

    def html(self) -> str:
        """The page."""
        data = {
            "texts": ["\n".join(t) for t in self.texts],
            "steps": self.steps,
            "leftOut": self.left_out,
        }
        return _PAGE.replace("@TITLE@", escape(self.title)).replace(
            "@DATA@", json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
        )


def differences(old: list[str], new: list[str]) -> list[list[int]]:
    """Blocks [from, to) of `old` that are replaced by [from, to) of `new`, in order."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(a) + len(b) > COMPARED:
        return [[head, head + len(a), head, head + len(b)]]
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [
        [head + i0, head + i1, head + j0, head + j1]
        for tag, i0, i1, j0, j1 in blocks
        if tag != "equal"
    ]


def op_changes(old: list[str], new: list[str]) -> dict[str, int]:
    """By how many ops of each name `new` has more than `old`; those that changed only."""
    counts = Counter(_op_names(new))
    counts.subtract(_op_names(old))
    return {name: n for name, n in sorted(counts.items()) if n}


def _op_names(lines: list[str]) -> list[str]:
    found: list[str] = []
    for line in lines:
        words = line.strip().partition(" = ")[2] if line.lstrip().startswith("%") else line.strip()
        name = words.strip('"').split(" ", 1)[0].split("(", 1)[0].split('"', 1)[0]
        if "." in name and name.replace(".", "").replace("_", "").isalnum():
            found.append(name)
    return found


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>@TITLE@</title>
<style>
html,body{height:100%;margin:0}
body{font:13px sans-serif;color:#222;display:grid;grid-template:auto 1fr/270px 1fr;background:#fff}
header{grid-column:1/3;padding:10px 14px;border-bottom:1px solid #ddd}
header b{font-size:15px}
.soft{color:#666}
nav{overflow:auto;border-right:1px solid #ddd;padding:6px 0}
nav div{padding:3px 12px;cursor:pointer;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
nav div.same{color:#999}
nav div.now{background:#e4ecf7}
nav div.bad{color:#b3261e;font-weight:bold}
nav span{float:right;color:#888;margin-left:8px}
main{overflow:auto}
table{border-collapse:collapse;font:12px/1.45 ui-monospace,monospace;width:100%;table-layout:fixed}
td{white-space:pre-wrap;overflow-wrap:anywhere;vertical-align:top;padding:0 6px}
td.n{width:42px;text-align:right;color:#999;user-select:none;padding-right:8px}
td.old{background:#fdebe9} td.new{background:#e7f4e8} td.gone{background:#f6f6f4}
tr.fold td{background:#eef1f5;color:#667;text-align:center;cursor:pointer;padding:2px}
col.n{width:48px}
</style></head><body>
<header><b>@TITLE@</b> <span class="soft" id="what"></span><br>
<span class="soft">&larr; &rarr; step through the passes; n: the next that changed something;
click folded lines to see them.</span></header>
<nav id="list"></nav><main id="view"></main>
<script>
"use strict";
const DATA=@DATA@, NEAR=4;
const texts=DATA.texts.map(t=>t.split("\\n")), list=document.getElementById("list");
const view=document.getElementById("view"), what=document.getElementById("what");
let now=-1;
DATA.steps.forEach((s,i)=>{
  const row=document.createElement("div"), time=document.createElement("span");
  time.textContent=s.ms.toFixed(1)+" ms"; row.append(time, `${i+1}  ${s.spec}`); row.title=s.spec;
  if(s.note) row.className="bad"; else if(s.before===s.after) row.className="same";
  row.onclick=()=>show(i); list.append(row);
});
function cell(row,text,kind,number){
  const n=row.insertCell(), c=row.insertCell();
  n.className="n "+kind; c.className=kind; n.textContent=number??""; c.textContent=text??"";
}
function line(t,s,i,j,changed){
  const row=t.insertRow(), a=texts[s.before][i], b=texts[s.after][j];
  cell(row,a,a===undefined?"gone":changed?"old":"",a===undefined?"":i+1);
  cell(row,b,b===undefined?"gone":changed?"new":"",b===undefined?"":j+1);
}
function equal(t,s,i,j,count,first,last){
  const head=first?0:NEAR, tail=last?0:NEAR;
  if(count<=head+tail+3){for(let k=0;k<count;k++) line(t,s,i+k,j+k,false); return;}
  for(let k=0;k<head;k++) line(t,s,i+k,j+k,false);
  const fold=t.insertRow(), c=fold.insertCell(); fold.className="fold"; c.colSpan=4;
  const hidden=count-head-tail;
  c.textContent=`${hidden} equal lines`;
  fold.onclick=()=>{
    const body=document.createElement("tbody");
    for(let k=head;k<count-tail;k++) line(body,s,i+k,j+k,false);
    fold.replaceWith(...body.rows);
  };
  for(let k=count-tail;k<count;k++) line(t,s,i+k,j+k,false);
}
function show(i){
  if(i<0||i>=DATA.steps.length) return;
  if(now>=0) list.children[now].classList.remove("now");
  now=i; list.children[i].classList.add("now"); list.children[i].scrollIntoView({block:"nearest"});
  const s=DATA.steps[i], table=document.createElement("table");
  table.innerHTML="<colgroup><col class=n><col><col class=n><col></colgroup>";
  const t=table.appendChild(document.createElement("tbody"));
  const ops=Object.entries(s.ops).map(([n,c])=>`${n} ${c>0?"+":"\\u2212"}${Math.abs(c)}`).join(", ");
  what.textContent=`${i+1} of ${DATA.steps.length}: ${s.spec} \\u2014 `+
    (s.note||(s.before===s.after?"changed nothing":ops||"same ops"))+
    (DATA.leftOut?` (${DATA.leftOut} texts left out: too large)`:"");
  let a=0,b=0; const old=texts[s.before], fresh=texts[s.after];
  for(const [i0,i1,j0,j1] of s.edits){
    equal(t,s,a,b,i0-a,a===0&&b===0,false);
    for(let k=0;k<Math.max(i1-i0,j1-j0);k++) line(t,s,i0+k<i1?i0+k:-1,j0+k<j1?j0+k:-1,true);
    a=i1; b=j1;
  }
  equal(t,s,a,b,old.length-a,s.edits.length===0?false:a===0,true);
  view.replaceChildren(table); view.scrollTop=0;
  const first=table.querySelector(".old,.new"); if(first) first.scrollIntoView({block:"center"});
}
addEventListener("keydown",e=>{
  if(e.key==="ArrowRight"||e.key==="ArrowDown"){e.preventDefault(); show(now+1);}
  if(e.key==="ArrowLeft"||e.key==="ArrowUp"){e.preventDefault(); show(now-1);}
  if(e.key==="n"){const k=DATA.steps.findIndex((s,i)=>i>now&&s.before!==s.after); if(k>=0) show(k);}
});
const first=DATA.steps.findIndex(s=>s.before!==s.after);
if(DATA.steps.length) show(Math.max(first,0)); else view.textContent="no passes were run";
</script></body></html>
"""
