"use strict";
// All text reaches the page through textContent: it comes from models and tools.
const ROW = 30, PAST = 8;
const $ = id => document.getElementById(id);
const base = location.pathname.replace(/[^/]*$/, "");
const runs = new Map(), folded = new Set();
let trace = null, order = [], rows = [], chosen = "", shown = "", live = false, drawn = false, wantDetail = 0;

function el(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}
const words = s => s === "open" ? (live ? "running" : "not ended") : s.replaceAll("_", " ");
const mark = s => ({ completed: "✓", failed: "✗", partial: "◐", timed_out: "◷", cancelled: "⊘" })[s] || "●";
const count = n => n < 10000 ? String(n) : n < 1e6 ? (n / 1e3).toFixed(n < 1e5 ? 1 : 0) + "k" : (n / 1e6).toFixed(1) + "M";
const time = ms => ms < 1000 ? Math.round(ms) + " ms" : ms < 60000 ? (ms / 1000).toFixed(1) + " s" : Math.floor(ms / 60000) + " min " + Math.round(ms % 60000 / 1000) + " s";
const cost = c => c === null || c === undefined ? "unknown" : c === 0 ? "$0" : "$" + c.toFixed(c < 0.1 ? 4 : 2);

function take(update) {
  trace = update.trace;
  for (const r of update.runs) runs.set(r.id, r);
  order = [];
  const kids = new Map();
  for (const r of runs.values()) {
    const parent = runs.has(r.parent) && r.parent !== r.id ? r.parent : "";
    if (!kids.has(parent)) kids.set(parent, []);
    kids.get(parent).push(r);
  }
  for (const list of kids.values()) list.sort((a, b) => a.place - b.place);
  const walk = (r, depth) => {
    r.depth = depth; r.kids = (kids.get(r.id) || []).length;
    order.push(r);
    for (const k of kids.get(r.id) || []) walk(k, depth + 1);
  };
  for (const r of kids.get("") || []) walk(r, 0);
  if (!chosen && order.length) chosen = order[0].id;
  if (update.runs.some(r => r.id === chosen)) shown = "";
  schedule();
}

function visible() {
  const out = [];
  let hidden = Infinity;
  for (const r of order) {
    if (r.depth > hidden) continue;
    hidden = folded.has(r.id) ? r.depth : Infinity;
    out.push(r);
  }
  return out;
}

function schedule() {
  if (drawn) return;
  drawn = true;
  requestAnimationFrame(() => { drawn = false; draw(); });
}

function draw() {
  if (!trace) return;
  document.title = trace.prompt + " · trace";
  $("title").textContent = trace.prompt || trace.id;
  $("facts").textContent = [words(trace.status), count(order.length) + (order.length === 1 ? " run" : " runs"), count(trace.tokens_in) + " tokens in, " + count(trace.tokens_out) + " out",
    "cost " + cost(trace.cost), time(trace.end - trace.start), trace.id].join(" · ");
  rows = visible();
  $("space").style.height = rows.length * ROW + "px";
  const box = $("scroll"), top = box.scrollTop, first = Math.max(0, Math.floor(top / ROW) - PAST);
  const last = Math.min(rows.length, Math.ceil((top + box.clientHeight) / ROW) + PAST);
  const list = $("rows");
  list.style.top = first * ROW + "px";
  list.replaceChildren(...rows.slice(first, last).map((r, i) => row(r, first + i)));
  const at = rows.find(r => r.id === chosen);
  if (at) box.setAttribute("aria-activedescendant", "run-" + at.id); else box.removeAttribute("aria-activedescendant");
  axis();
  if (shown !== chosen) { shown = chosen; detail(); }
}

const span = () => Math.max(1, trace.end - trace.start);

function row(r, i) {
  const e = el("div", "row");
  e.id = "run-" + r.id;
  e.setAttribute("role", "treeitem");
  e.setAttribute("aria-level", r.depth + 1);
  e.setAttribute("aria-setsize", rows.length);
  e.setAttribute("aria-posinset", i + 1);
  e.setAttribute("aria-selected", r.id === chosen);
  e.setAttribute("aria-label", r.agent + ", " + words(r.status) + ", " + r.what);
  if (r.kids) e.setAttribute("aria-expanded", !folded.has(r.id));
  const name = el("div", "name");
  name.style.paddingLeft = Math.min(r.depth, 12) * 14 + 8 + "px";
  const fold = el("span", "fold", r.kids ? (folded.has(r.id) ? "▸" : "▾") : "");
  if (r.kids) fold.onclick = ev => { ev.stopPropagation(); toggle(r.id); };
  name.append(fold, el("span", "mark " + r.status, mark(r.status)), el("b", "", r.agent), el("span", "what", r.what), el("span", "figures", count(r.tokens_in + r.tokens_out)));
  const track = el("div", "track");
  for (const p of r.pieces) {
    const bar = el("i", p.kind);
    bar.style.left = (p.start - trace.start) / span() * 100 + "%";
    bar.style.width = Math.max(0, (p.end < 0 ? trace.end : p.end) - p.start) / span() * 100 + "%";
    bar.title = p.name + " · " + time((p.end < 0 ? trace.end : p.end) - p.start);
    track.append(bar);
  }
  e.append(name, track);
  e.onclick = () => choose(r.id);
  return e;
}

function axis() {
  const step = [1, 2, 5].flatMap(m => [0, 1, 2, 3, 4, 5, 6, 7].map(p => m * 10 ** p)).sort((a, b) => a - b).find(s => span() / s <= 6) || span();
  const marks = [];
  for (let t = 0; t < span(); t += step) {
    const m = el("span", "", time(t));
    m.style.left = t / span() * 100 + "%";
    marks.push(m);
  }
  $("axis").replaceChildren(...marks);
}

function toggle(id) { if (!folded.delete(id)) folded.add(id); schedule(); }

function choose(id) {
  chosen = id;
  const i = rows.findIndex(r => r.id === id), box = $("scroll");
  if (i >= 0) {
    if (i * ROW < box.scrollTop) box.scrollTop = i * ROW;
    else if ((i + 1) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (i + 1) * ROW - box.clientHeight;
  }
  schedule();
}

$("scroll").addEventListener("keydown", e => {
  const i = rows.findIndex(r => r.id === chosen), page = Math.floor($("scroll").clientHeight / ROW);
  const go = n => choose(rows[Math.max(0, Math.min(rows.length - 1, n))].id);
  if (i < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
  const r = rows[i];
  switch (e.key) {
    case "ArrowDown": go(i + 1); break;
    case "ArrowUp": go(i - 1); break;
    case "PageDown": go(i + page); break;
    case "PageUp": go(i - page); break;
    case "Home": go(0); break;
    case "End": go(rows.length - 1); break;
    case "ArrowLeft": if (r.kids && !folded.has(r.id)) toggle(r.id); else if (rows.some(p => p.id === r.parent)) choose(r.parent); break;
    case "ArrowRight": if (folded.has(r.id)) toggle(r.id); else if (r.kids) go(i + 1); break;
    case "Enter": $("run").focus(); break;
    default: return;
  }
  e.preventDefault();
});
$("scroll").addEventListener("scroll", schedule, { passive: true });
addEventListener("resize", schedule);

function fact(dl, name, value) { if (value) dl.append(el("dt", "", name), el("dd", "", value)); }

function block(title, text, open, className) {
  const d = el("details", className);
  d.open = open;
  d.append(el("summary", "", title), el("pre", "", text));
  return d;
}

// detail fetches what the chosen run was told and said.
async function detail() {
  const id = chosen, n = ++wantDetail, r = runs.get(id), box = $("run");
  if (!r) return;
  let data;
  try {
    const resp = await fetch(base + "run?id=" + encodeURIComponent(id), { cache: "no-store" });
    if (!resp.ok) throw new Error(resp.statusText);
    data = await resp.json();
  } catch (e) { data = { entries: [], problem: String(e.message) }; }
  if (n !== wantDetail) return;
  const stay = box.dataset.run === id ? box.scrollTop : 0;
  const opened = new Map([...box.querySelectorAll("details")].map(d => [d.dataset.key, d.open]));
  box.dataset.run = id;
  const out = [el("h2", "", r.agent)];
  out.push(el("p", "faint", r.what));
  const dl = el("dl");
  fact(dl, "status", words(r.status) + (r.cause ? ": " + r.cause : ""));
  fact(dl, "model", r.model);
  fact(dl, "effort", r.effort);
  fact(dl, "turns", String(r.turns));
  fact(dl, "tokens", count(r.tokens_in) + " in, " + count(r.tokens_out) + " out" + (r.kids ? "; with sub-agents " + count(r.total_in) + " in, " + count(r.total_out) + " out" : ""));
  fact(dl, "cost", cost(r.cost) + (r.kids ? "; with sub-agents " + cost(r.total_cost) : ""));
  fact(dl, "time", time(r.elapsed) + (r.waiting ? ", " + time(r.waiting) + " of it waiting for an answer" : ""));
  fact(dl, "retries", r.retries ? String(r.retries) : "");
  fact(dl, "id", r.id);
  out.push(dl);
  if (data.problem) out.push(el("p", "failed", data.problem));
  data.entries.forEach((x, i) => {
    const d = block(x.title, x.text, x.open, x.kind);
    d.dataset.key = id + "/" + i;
    if (opened.has(d.dataset.key)) d.open = opened.get(d.dataset.key);
    if (x.child && runs.has(x.child)) {
      const p = el("p");
      const b = el("button", "", "show that run");
      b.onclick = () => { choose(x.child); $("scroll").focus(); };
      p.append(b);
      d.append(p);
    }
    out.push(d);
  });
  if (data.cut) out.push(el("p", "faint", data.cut));
  box.replaceChildren(...out);
  box.scrollTop = stay;
}

const source = new EventSource(base + "events");
const say = (text, className) => { $("state").textContent = text; $("state").className = className; };
source.addEventListener("update", e => {
  const update = JSON.parse(e.data);
  live = update.trace.status === "open";
  say(live ? "live" : "", live ? "live" : "");
  take(update);
});
source.addEventListener("end", () => { source.close(); live = false; say("", ""); schedule(); });
source.addEventListener("problem", e => { say(JSON.parse(e.data), "lost"); });
source.onerror = () => say("no connection: is `synapse trace view` still running?", "lost");
