"""A schedule as one HTML page: the bars of the picture, to zoom into and point at. Nothing is loaded."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import numpy as np

from irkit.viewing.svg import COLOURS
from irkit.viewing.timeline import Timeline


def schedule_page(timelines: list[Timeline], title: str) -> str:
    """HTML text. Times are in the page as whole nanoseconds."""
    data = json.dumps([_data(one) for one in timelines], separators=(",", ":"))
    return (
        _PAGE.replace("@TITLE@", escape(title))
        .replace("@COLOURS@", json.dumps(COLOURS))
        .replace("@DATA@", data.replace("</", "<\\/"))
    )


def _data(one: Timeline) -> dict[str, Any]:
    def whole(values: Any) -> list[int]:
        return np.rint(values).astype(np.int64).tolist()

    return {
        "title": one.title,
        "veus": one.veus,
        "duration": one.duration,
        "totals": one.totals(),
        "kernels": [[k.symbol, k.rkernel, k.sources] for k in one.kernels],
        "steps": [[s.kernel, s.wave, list(s.waits)] for s in one.steps],
        "append": one.append.tolist(),
        "task": one.task.tolist(),
        "veu": one.veu.tolist(),
        "arrived": whole(one.arrived),
        "start": whole(one.start),
        "end": whole(one.end),
    }


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>@TITLE@</title>
<style>
body{font:13px sans-serif;margin:16px;color:#222;background:#fff}
h1{font-size:17px;margin:0 0 2px}
.soft{color:#666}
canvas{display:block;width:100%;cursor:crosshair}
.panel{margin-top:14px}
#tip{position:fixed;display:none;background:#222;color:#fff;padding:6px 8px;white-space:pre;
 border-radius:3px;pointer-events:none;max-width:60ch;overflow:hidden}
#legend{margin-top:14px;columns:3;line-height:1.7}
#legend span.key{display:inline-block;width:12px;height:12px;margin-right:6px;vertical-align:-1px}
#legend div{cursor:pointer;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
#legend div.off{opacity:.3}
</style></head><body>
<h1>@TITLE@</h1>
<div class="soft">Every row is a vEU, every bar an rTask. Hatched: waiting. Empty: idle.
Wheel zooms, drag moves, double-click shows all; click a name below to fade it.</div>
<div id="panels"></div><div id="legend"></div><div id="tip"></div>
<script>
"use strict";
const COLOURS=@COLOURS@, DATA=@DATA@;
const LEFT=56, AXIS=20, longest=Math.max(...DATA.map(d=>d.duration),1);
let from=0, to=longest, off=new Set();
const tip=document.getElementById("tip"), panels=[];
const time=ns=>ns>=1e6?(ns/1e6).toPrecision(4)+" ms":(ns/1e3).toPrecision(4)+" \\u00b5s";
const colour=k=>COLOURS[k%COLOURS.length];
const percent=x=>(100*x).toFixed(0)+" %";

for(const d of DATA){
  const box=document.createElement("div"); box.className="panel";
  const head=document.createElement("div");
  head.innerHTML="<b></b> <span class=soft></span>";
  head.children[0].textContent=d.title;
  head.children[1].textContent=`${d.task.length} rTasks in ${time(d.duration)}; working `+
    `${percent(d.totals.working)}, waiting ${percent(d.totals.waiting)}, idle ${percent(d.totals.idle)}`;
  const canvas=document.createElement("canvas");
  box.append(head,canvas); document.getElementById("panels").append(box);
  const pitch=Math.max(4,Math.min(34,560/d.veus));
  // Per vEU, rows in order of time: what is under the mouse is found by halving.
  const rows=Array.from({length:d.veus},()=>[]);
  d.veu.forEach((v,i)=>rows[v].push(i));
  rows.forEach(r=>r.sort((a,b)=>d.arrived[a]-d.arrived[b]));
  panels.push({d,canvas,pitch,rows});
}

function hatch(g){
  const c=document.createElement("canvas"); c.width=c.height=6;
  const h=c.getContext("2d"); h.strokeStyle="#b8b4ae"; h.lineWidth=1.4;
  h.beginPath(); h.moveTo(-1,7); h.lineTo(7,-1); h.stroke();
  return g.createPattern(c,"repeat");
}

function draw(p){
  const {d,canvas,pitch,rows}=p, ratio=window.devicePixelRatio||1;
  const width=canvas.clientWidth, height=pitch*d.veus+AXIS;
  canvas.style.height=height+"px"; canvas.width=width*ratio; canvas.height=height*ratio;
  const g=canvas.getContext("2d"); g.scale(ratio,ratio); g.font="11px sans-serif";
  const scale=(width-LEFT)/(to-from), x=ns=>LEFT+(ns-from)*scale, pattern=hatch(g);
  const every=Math.max(1,Math.round(14/pitch));
  for(let v=0;v<d.veus;v++){
    g.fillStyle="#f2f2f0"; g.fillRect(LEFT,v*pitch,width-LEFT,pitch*.86);
    if(v%every==0){g.fillStyle="#666"; g.textAlign="right"; g.fillText("vEU "+v,LEFT-5,v*pitch+pitch/2+4);}
  }
  let step=Math.pow(10,Math.floor(Math.log10((to-from)/10)));
  step*=[1,2,5,10].find(f=>(to-from)/(step*f)<=10);
  g.textAlign="center";
  for(let t=Math.ceil(from/step)*step;t<=to;t+=step){
    g.strokeStyle="#d8d8d4"; g.beginPath(); g.moveTo(x(t),0); g.lineTo(x(t),pitch*d.veus); g.stroke();
    g.fillStyle="#666"; g.fillText(t?time(t):"0",Math.min(Math.max(x(t),LEFT+8),width-26),height-5);
  }
  g.save(); g.beginPath(); g.rect(LEFT,0,width-LEFT,height); g.clip();
  rows.forEach((r,v)=>{
    for(const i of r){
      if(d.end[i]<from||d.arrived[i]>to) continue;
      const a=x(d.arrived[i]), b=x(d.start[i]), c=x(d.end[i]);
      if(b-a>.3){g.fillStyle=pattern; g.fillRect(a,v*pitch,b-a,pitch*.86);}
      const k=d.steps[d.append[i]][0];
      g.globalAlpha=off.has(d.kernels[k][0])?.12:1;
      g.fillStyle=colour(k); g.fillRect(b,v*pitch,Math.max(c-b-(c-b>3?.5:0),.4),pitch*.86);
      if(c-b>60&&pitch>13){
        g.fillStyle="#fff"; g.textAlign="left";
        g.save(); g.beginPath(); g.rect(b,v*pitch,c-b,pitch); g.clip();
        g.fillText(d.kernels[k][0],Math.max(b,LEFT)+4,v*pitch+pitch/2+3); g.restore();
      }
      g.globalAlpha=1;
    }
  });
  g.restore();
}
const drawAll=()=>panels.forEach(draw);

function under(p,e){
  const box=p.canvas.getBoundingClientRect(), v=Math.floor((e.clientY-box.top)/p.pitch);
  const t=from+(e.clientX-box.left-LEFT)/(box.width-LEFT)*(to-from), r=p.rows[v];
  if(!r||e.clientX-box.left<LEFT) return;
  let low=0, high=r.length;
  while(low<high){const m=(low+high)>>1; if(p.d.arrived[r[m]]<=t) low=m+1; else high=m;}
  const i=r[low-1];
  if(i!==undefined&&p.d.end[i]>=t) return i;
}

let grip=null;
for(const p of panels){
  p.canvas.addEventListener("mousemove",e=>{
    if(grip){
      const move=(grip.x-e.clientX)/(p.canvas.clientWidth-LEFT)*(grip.to-grip.from);
      from=grip.from+move; to=grip.to+move; drawAll(); return;
    }
    const i=under(p,e), d=p.d;
    if(i===undefined){tip.style.display="none"; return;}
    const s=d.steps[d.append[i]], k=d.kernels[s[0]];
    tip.textContent=`@${k[0]} rTask ${d.task[i]}, append ${d.append[i]}, wave ${s[1]}\\n${k[1]}: `+
      `${time(d.end[i]-d.start[i])}, after ${time(d.start[i]-d.arrived[i])} of waiting`+
      (s[2].length?` for appends ${s[2].join(", ")}`:"")+`\\nat ${time(d.start[i])}\\nfrom ${k[2]}`;
    tip.style.display="block";
    tip.style.left=Math.min(e.clientX+14,innerWidth-tip.offsetWidth-8)+"px";
    tip.style.top=Math.min(e.clientY+14,innerHeight-tip.offsetHeight-8)+"px";
  });
  p.canvas.addEventListener("mouseleave",()=>{tip.style.display="none";});
  p.canvas.addEventListener("mousedown",e=>{grip={x:e.clientX,from,to};});
  p.canvas.addEventListener("dblclick",()=>{from=0; to=longest; drawAll();});
  p.canvas.addEventListener("wheel",e=>{
    e.preventDefault();
    const share=(e.clientX-p.canvas.getBoundingClientRect().left-LEFT)/(p.canvas.clientWidth-LEFT);
    const t=from+share*(to-from), f=Math.exp(e.deltaY*.0015);
    from=Math.max(t-(t-from)*f,-longest*.02); to=Math.min(t+(to-t)*f,longest*1.02); drawAll();
  },{passive:false});
}
addEventListener("mouseup",()=>{grip=null;});
addEventListener("resize",drawAll);

const spent=new Map();
for(const {d} of panels.slice(-1)) d.append.forEach((a,i)=>{
  const k=d.steps[a][0]; spent.set(k,(spent.get(k)||0)+d.end[i]-d.start[i]);
});
const all=[...spent.values()].reduce((a,b)=>a+b,0)||1, last=DATA[DATA.length-1];
for(const [k,t] of [...spent].sort((a,b)=>b[1]-a[1])){
  const [name,rkernel,sources]=last.kernels[k], row=document.createElement("div");
  row.innerHTML="<span class=key></span><span></span>"; row.title=sources;
  row.children[0].style.background=colour(k);
  row.children[1].textContent=`@${name}  ${rkernel}  ${(100*t/all).toFixed(1)} %`;
  row.onclick=()=>{off.has(name)?off.delete(name):off.add(name); row.classList.toggle("off"); drawAll();};
  document.getElementById("legend").append(row);
}
drawAll();
</script></body></html>
"""
