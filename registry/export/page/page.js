"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  $("data").remove();
  const { calls, meta } = data;

  // el makes an element. Text only ever gets in as text nodes, never as markup.
  const el = (tag, attrs, ...children) => {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attrs || {})) {
      if (name === "class") e.className = value;
      else if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
      else if (value !== false && value != null) e.setAttribute(name, value === true ? "" : value);
    }
    e.append(...children.filter((c) => c != null && c !== ""));
    return e;
  };
  // visible shows control and direction characters as escapes.
  const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
  const visible = (s) => String(s).replace(hidden, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  const line = (s) => visible(s).replace(/[\n\t]+/g, " ");

  const duration = (ms) => {
    if (!(ms > 0)) return "0 ms";
    if (ms < 0.05) return "<0.1 ms";
    if (ms < 9.95) return ms.toFixed(1) + " ms";
    if (ms < 999.5) return ms.toFixed(0) + " ms";
    if (ms < 9950) return (ms / 1000).toFixed(1) + " s";
    if (ms < 59500) return Math.round(ms / 1000) + " s";
    if (ms < 3600e3) return Math.floor(ms / 60e3) + " min " + Math.floor((ms / 1000) % 60) + " s";
    return Math.floor(ms / 3600e3) + " h " + Math.floor((ms / 60e3) % 60) + " min";
  };
  const size = (n) => (n < 1000 ? n + " B" : n < 999.5e3 ? (n / 1e3).toFixed(n < 99950 ? 1 : 0) + " kB" : (n / 1e6).toFixed(1) + " MB");
  const two = (n) => String(n).padStart(2, "0");
  const clock = (t, digits) => {
    const d = new Date(t);
    let s = two(d.getHours()) + ":" + two(d.getMinutes()) + ":" + two(d.getSeconds());
    if (digits) s += "." + String(d.getMilliseconds()).padStart(3, "0").slice(0, digits);
    return s;
  };
  const day = (t) => { const d = new Date(t); return d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate()); };
  const count = (n, noun) => n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s");

  // --- Data ---------------------------------------------------------------
  const notification = (c) => c.k === 1;
  const unanswered = (c) => c.k === 2;
  let first = Infinity, last = -Infinity;
  const byNumber = new Map(), children = new Map();
  for (const c of calls) {
    c.d = c.d || 0;
    c.end = c.t + c.d;
    if (c.n) byNumber.set(c.n, c);
    first = Math.min(first, c.t);
    last = Math.max(last, c.end);
  }
  for (const e of meta.events) { last = Math.max(last, Math.min(e.t, last)); }
  if (!calls.length) { first = 0; last = 1; }
  if (last - first < 1) last = first + 1;
  for (const c of calls) {
    if (unanswered(c)) { c.end = last; c.d = last - c.t; }
    if (c.up && c.up !== c.n && byNumber.has(c.up)) {
      if (!children.has(c.up)) children.set(c.up, []);
      children.get(c.up).push(c);
    }
    const args = argumentsOf(c);
    c.args = args;
    c.words = [c.m, c.nm, c.og, c.v, c.c, c.f, c.o, args].join(" ").toLowerCase();
  }
  const byStart = (a, b) => a.t - b.t || (a.n || 0) - (b.n || 0);
  calls.sort(byStart);
  for (const list of children.values()) list.sort(byStart);

  // Medians make slow calls visible. Fewer than three calls have none.
  const medians = new Map();
  const target = (c) => c.v + "\n" + c.m + "\n" + (c.og || c.nm || "");
  for (const c of calls) {
    if (c.k || c.f) continue;
    if (!medians.has(target(c))) medians.set(target(c), []);
    medians.get(target(c)).push(c.d - (c.wu || 0));
  }
  for (const [key, all] of medians) {
    if (all.length < 3) { medians.delete(key); continue; }
    all.sort((a, b) => a - b);
    medians.set(key, { ms: all[all.length >> 1], n: all.length });
  }

  // argumentsOf returns a short text of a call's arguments, without parsing numbers.
  function argumentsOf(c) {
    if (!c.p) return "";
    if (c.m === "resources/read") return "";
    const text = c.m === "tools/call" || c.m === "prompts/get" ? toolArguments(c) : c.p;
    if (text === c.p && c.m === "tools/call") return "";
    return text.slice(0, 300).replace(/\s+/g, " ").replace(/^\{\s*|\s*\}$/g, "").replace(/"([A-Za-z_][\w-]*)":\s*/g, "$1=").slice(0, 160);
  }

  // --- State --------------------------------------------------------------
  const state = { from: first, to: last, query: "", group: "client", notifications: false, failures: false, closed: new Set(), selected: null };
  let rows = [];
  const margin = (last - first) * 0.02;
  const whole = () => { state.from = first - margin * 0.25; state.to = last + margin; };
  whole();

  // matcher understands words, "quoted words", -excluded and field:value.
  const fields = { server: "v", client: "c", method: "m", name: "nm", session: "s", status: "o", error: "f", profile: "pr" };
  function matcher(query) {
    const terms = [];
    for (const [, not, key, quoted, plain] of query.matchAll(/(-?)(?:(\w+):)?(?:"([^"]*)"|(\S+))/g)) {
      const value = (quoted ?? plain ?? "").toLowerCase();
      const field = key && Object.hasOwn(fields, key) ? fields[key] : null;
      const text = key && !field ? key.toLowerCase() + ":" + value : value;
      if (text === "" || text === "-") continue;
      terms.push({ not: not === "-", test: (c) => (field ? String(c[field] ?? "").toLowerCase().includes(text) : c.words.includes(text)) });
    }
    return (c) => terms.every((t) => t.test(c) !== t.not);
  }

  function layout() {
    const fits = matcher(state.query);
    const seen = (c) => (state.notifications || !notification(c)) && (!state.failures || c.f) && fits(c);
    const shown = new Set(calls.filter(seen));
    const groups = new Map();
    const keyOf = (c) => {
      const root = rootOf(c);
      if (state.group === "client") return root.c || "Goblin";
      if (state.group === "server") return c.v || "Goblin";
      if (state.group === "session") return root.s ? "session " + root.s + (root.c ? " of " + root.c : "") : "no session";
      return "";
    };
    const nested = state.group !== "server";
    const parentShown = (c) => nested && c.up && c.up !== c.n && shown.has(byNumber.get(c.up));
    for (const c of calls) {
      if (!shown.has(c) || parentShown(c)) continue;
      const key = keyOf(c);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(c);
    }
    rows = [];
    const placed = new Set();
    const place = (c, depth) => {
      if (placed.has(c)) return;
      placed.add(c);
      rows.push({ call: c, depth });
      if (nested && depth < 12) for (const child of children.get(c.n) || []) if (c.n && shown.has(child)) place(child, depth + 1);
    };
    for (const [key, list] of groups) {
      if (state.group) {
        rows.push({ group: key, n: 0, failed: 0 });
        const head = rows[rows.length - 1], from = rows.length;
        for (const c of list) place(c, 0);
        for (const r of rows.slice(from)) { if (!notification(r.call)) head.n++; if (r.call.f) head.failed++; head.calls = (head.calls || 0) + 1; }
        if (state.closed.has(key)) rows.length = from;
      } else for (const c of list) place(c, 0);
    }
    for (const c of calls) { // cycles of parents in damaged recordings
      if (shown.has(c) && !placed.has(c) && parentShown(c) && inCycle(c)) place(c, 0);
    }
    const requests = calls.reduce((n, c) => n + (shown.has(c) && !notification(c) ? 1 : 0), 0);
    $("count").textContent = count(requests, "request") + (requests < total ? " of " + total.toLocaleString("en") : "");
    if (state.selected && !rows.some((r) => r.call === state.selected)) select(null);
    render();
  }
  const total = calls.filter((c) => !notification(c)).length;

  function rootOf(c) {
    for (let i = 0; i < 32 && c.up && byNumber.has(c.up) && c.up !== c.n; i++) c = byNumber.get(c.up);
    return c;
  }
  function inCycle(c) {
    let up = c;
    for (let i = 0; i < 32; i++) { up = up.up && byNumber.get(up.up); if (!up) return false; if (up === c) return true; }
    return true;
  }

  // --- Rows ---------------------------------------------------------------
  const scroll = $("scroll"), space = $("space"), holder = $("rows");
  const rowHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 26;
  const percent = (t) => ((t - state.from) / (state.to - state.from)) * 100;

  function render() {
    const h = rowHeight();
    space.style.height = rows.length * h + "px";
    const from = Math.max(0, Math.floor(scroll.scrollTop / h) - 8);
    const to = Math.min(rows.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / h) + 8);
    holder.style.transform = "translateY(" + from * h + "px)";
    const list = [];
    const cursor = cursorRow();
    for (let i = from; i < to; i++) list.push(drawRow(rows[i], i, cursor));
    if (!rows.length) list.push(el("div", { class: "empty" }, total ? "No matching requests" : "No requests recorded"));
    holder.replaceChildren(...list);
    const at = cursor ? rows.indexOf(cursor) : -1;
    if (at >= from && at < to) scroll.setAttribute("aria-activedescendant", "row-" + at);
    else scroll.removeAttribute("aria-activedescendant");
    drawTicks();
    drawOverview();
  }
  let cursorGroup = null;
  const cursorRow = () => rows.find((r) => (state.selected ? r.call === state.selected : cursorGroup !== null && r.group === cursorGroup));

  function drawRow(r, i, cursor) {
    const common = { id: "row-" + i, role: "option" };
    if (r.group !== undefined) {
      const open = !state.closed.has(r.group);
      return el("div", { ...common, class: "row group" + (r === cursor ? " selected" : ""), "aria-selected": String(r === cursor), "aria-expanded": String(open), onclick: () => { cursorGroup = r.group; select(null); toggle(r.group); } },
        el("div", { class: "label" }, el("span", { class: "mark" }, open ? "▾" : "▸"), el("span", { class: "name" }, line(r.group)),
          el("span", { class: "more" }, count(r.n, "request") + (r.failed ? ", " + r.failed + " failed" : ""))), el("div", { class: "lane" }));
    }
    const c = r.call;
    let kind = "row";
    if (c.f) kind += " bad";
    if (notification(c)) kind += " notification";
    if (unanswered(c)) kind += " unanswered";
    if (c === state.selected) kind += " selected";
    const short = c.nm || c.m;
    const more = [c.nm && c.m !== "tools/call" ? c.m : "", state.group === "server" ? c.c : c.v, c.args].filter(Boolean).join(" · ");
    const indent = el("span", { class: "mark" }, c.f ? "✗" : c.in ? "←" : notification(c) ? "·" : "");
    const label = el("div", { class: "label" }, el("span", { class: "time" }, clock(c.t, 3)), indent, el("span", { class: "name" }, line(short)), el("span", { class: "more" }, line(more)));
    label.style.setProperty("--depth", String(Math.min(r.depth, 6)));
    const title = line(c.m + " " + (c.nm || "")) + ", " + (notification(c) ? "notification" : unanswered(c) ? "no answer recorded" : duration(c.d)) + (c.f ? ", failed: " + line(c.f) : "");
    return el("div", { ...common, class: kind, title, "aria-label": title, "aria-selected": String(c === state.selected), onclick: () => { select(c); openDetail(); } }, label, drawLane(c));
  }

  const asksUser = new Set(["elicitation/create", "sampling/createMessage"]);
  function drawLane(c) {
    const lane = el("div", { class: "lane" });
    const a = percent(c.t), b = percent(c.end);
    if (notification(c)) {
      if (a >= 0 && a <= 100) lane.append(at(el("i", { class: "dot" }), a));
      return lane;
    }
    if (b >= 0 && a <= 100) {
      const left = Math.max(a, -5), right = Math.min(b, 105);
      const bar = at(el("div", { class: "bar" }), left);
      bar.style.width = Math.max(right - left, 0) + "%";
      if (c.d > 0 && left === a && right === b) {
        const part = (name, ms) => { if (ms > 0) { const i = el("i", { class: name }); i.style.width = Math.min((ms / c.d) * 100, 100) + "%"; return i; } return null; };
        bar.append(...[part("start", c.ws), part("queue", c.wq), el("b"), part("user", c.wu)].filter(Boolean));
      }
      if (c.in && asksUser.has(c.m)) bar.classList.add("user");
      lane.append(bar);
      const usual = medians.get(target(c));
      let text = duration(c.d - (c.wu || 0));
      if (c.wu > 0) text += " + " + duration(c.wu) + " for the user";
      if (unanswered(c)) text = "no answer";
      else if (usual && !c.f && c.d - (c.wu || 0) > 3 * usual.ms && c.d > 10) text += ", " + Math.round((c.d - (c.wu || 0)) / usual.ms) + "× median";
      if (c.f) text += "  " + line(c.f).slice(0, 80);
      const took = el("span", { class: "took" }, text);
      if (right < 72) took.style.left = "calc(" + right + "% + 3px)";
      else if (left > 28) took.style.right = "calc(" + (100 - left) + "% + 1px)";
      else took.classList.add("inside");
      lane.append(took);
    }
    if (!state.notifications && c.n) for (const child of (children.get(c.n) || []).slice(0, 200)) {
      const x = percent(child.t);
      if (notification(child) && x >= 0 && x <= 100) lane.append(at(el("i", { class: "dot" }), x));
    }
    return lane;
  }
  function at(e, x) { e.style.left = x + "%"; return e; }

  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 14400e3, 43200e3, 86400e3, 604800e3, 2592000e3, 31536000e3];
  function drawTicks() {
    const box = $("ticks"), width = box.clientWidth || 600, span = state.to - state.from;
    const most = Math.max(2, Math.floor(width / 100));
    const step = steps.find((s) => span / s <= most) || span / most;
    const list = [];
    const offset = step >= 60e3 ? new Date(first).getTimezoneOffset() * 60e3 : 0;
    for (let t = Math.ceil((state.from - offset) / step) * step + offset, i = 0; t < state.to && i < 60; t += step, i++) {
      let text = clock(t, step < 1000 ? 3 : 0);
      if (step >= 86400e3) text = day(t);
      else if (step < 1) text = "+" + (t - first).toFixed(2) + " ms";
      list.push(at(el("span", {}, text), percent(t)));
    }
    box.replaceChildren(...list);
  }

  // --- Overview: requests in flight --------------------------------------
  const overview = $("overview");
  let flight = null;
  function buckets(n) {
    if (flight && flight.n === n) return flight;
    const all = new Float64Array(n), bad = new Uint8Array(n), span = last - first;
    const x = (t) => Math.min(n - 1, Math.max(0, Math.floor(((t - first) / span) * n)));
    for (const c of calls) {
      if (notification(c)) continue;
      for (let i = x(c.t), e = x(c.end); i <= e; i++) { all[i]++; if (c.f) bad[i] = 1; }
    }
    let most = 1;
    for (const v of all) most = Math.max(most, v);
    return (flight = { n, all, bad, most });
  }
  function drawOverview() {
    const w = overview.clientWidth, h = 44, scale = window.devicePixelRatio || 1;
    if (!w) return;
    overview.width = w * scale; overview.height = h * scale;
    const g = overview.getContext("2d"), css = getComputedStyle(document.documentElement), color = (n) => css.getPropertyValue(n).trim();
    g.scale(scale, scale);
    const f = buckets(Math.max(1, Math.min(Math.floor(w / 2), 1000))), bw = w / f.n;
    for (let i = 0; i < f.n; i++) {
      if (!f.all[i]) continue;
      const bh = Math.max(2, (f.all[i] / f.most) * (h - 8));
      g.fillStyle = color(f.bad[i] ? "--bad" : "--work");
      g.fillRect(i * bw, h - bh, Math.max(bw - 0.5, 1), bh);
    }
    const x = (t) => ((t - first) / (last - first)) * w;
    const a = Math.max(0, x(state.from)), b = Math.min(w, x(state.to));
    g.fillStyle = color("--bg"); g.globalAlpha = 0.65;
    g.fillRect(0, 0, a, h); g.fillRect(b, 0, w - b, h);
    g.globalAlpha = 1; g.strokeStyle = color("--accent"); g.lineWidth = 1.5;
    if (a > 0 || b < w) g.strokeRect(a + 0.75, 0.75, Math.max(b - a - 1.5, 1), h - 1.5);
    g.fillStyle = color("--dim"); g.font = "10px system-ui, sans-serif";
    g.fillText("max " + f.most + " in flight", 6, 12);
  }
  let drag = null;
  const timeAt = (e) => { const r = overview.getBoundingClientRect(); return first + Math.min(1, Math.max(0, (e.clientX - r.left) / r.width)) * (last - first); };
  overview.addEventListener("pointerdown", (e) => { drag = timeAt(e); overview.setPointerCapture(e.pointerId); });
  overview.addEventListener("pointermove", (e) => { if (drag !== null) { const t = timeAt(e); if (Math.abs(t - drag) > (last - first) / 200) { setWindow(Math.min(t, drag), Math.max(t, drag)); } } });
  overview.addEventListener("pointerup", () => { drag = null; });
  overview.addEventListener("pointercancel", () => { drag = null; });
  overview.addEventListener("dblclick", () => { whole(); render(); });

  // --- Zoom ---------------------------------------------------------------
  function setWindow(from, to) {
    const least = 0.05, most = (last - first) + margin * 2, span = Math.min(most, Math.max(least, to - from));
    const middle = (from + to) / 2;
    state.from = middle - span / 2; state.to = middle + span / 2;
    const low = first - margin, high = last + margin;
    if (state.from < low) { state.to += low - state.from; state.from = low; }
    if (state.to > high) { state.from -= state.to - high; state.to = high; }
    state.from = Math.max(state.from, low);
    render();
  }
  function zoom(by, center) {
    const c = state.selected;
    let m = center ?? (c && c.end > state.from && c.t < state.to ? Math.max(c.t, state.from) : (state.from + state.to) / 2);
    m = Math.min(Math.max(m, state.from), state.to);
    const part = (m - state.from) / (state.to - state.from), span = Math.max((state.to - state.from) * by, 0.05);
    setWindow(m - span * part, m + span * (1 - part));
  }
  const pan = (by) => { const d = (state.to - state.from) * by; setWindow(state.from + d, state.to + d); };
  $("zoom-in").onclick = () => zoom(0.5);
  $("zoom-out").onclick = () => zoom(2);
  $("zoom-all").onclick = () => { whole(); render(); };
  scroll.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) { if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); pan(e.deltaX / 800); } return; }
    e.preventDefault();
    const box = $("ticks").getBoundingClientRect();
    zoom(e.deltaY > 0 ? 1.25 : 0.8, state.from + ((e.clientX - box.left) / box.width) * (state.to - state.from));
  }, { passive: false });

  // --- Details ------------------------------------------------------------
  const detail = $("detail");
  function select(c) {
    state.selected = c;
    if (c) cursorGroup = null;
    if (!c) closeDetail();
    render();
  }
  function closeDetail() { if (!detail.hidden) { detail.hidden = true; render(); } }
  function toggle(group) { state.closed.has(group) ? state.closed.delete(group) : state.closed.add(group); layout(); }

  // pretty indents JSON by its tokens, so that large numbers keep their digits.
  function pretty(text) {
    let out = "", depth = 0;
    const indent = () => "\n" + "  ".repeat(Math.min(depth, 40));
    for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+/g)) {
      if (token === "{" || token === "[") { depth++; out += token + indent(); }
      else if (token === "}" || token === "]") { depth--; out = /[{\[]\s*$/.test(out.slice(-90)) ? out.trimEnd() + token : out + indent() + token; }
      else if (token === ",") out += token + indent();
      else if (token === ":") out += ": ";
      else out += token;
    }
    return out;
  }
  function body(title, text, cut, whole) {
    if (!text && !whole) return [];
    const note = !text ? "not in this page (" + size(whole) + ")" : cut ? "the first " + size(text.length) + (whole > text.length ? " of " + size(whole) : "") : "";
    const pre = el("pre", { tabindex: "0", "aria-label": title });
    if (text) pre.textContent = visible(pretty(text));
    return [el("h3", {}, title, note ? el("span", { class: "dim" }, note) : null, text ? copyButton(text) : null), text ? pre : null];
  }
  function copyButton(text) {
    const b = el("button", { type: "button", class: "small" }, "Copy");
    b.onclick = () => {
      const done = () => { b.textContent = "Copied"; setTimeout(() => { b.textContent = "Copy"; }, 1500); };
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => { b.textContent = "Not allowed"; });
    };
    return b;
  }
  // readable returns the texts of a tool's result, which JSON shows on one line.
  function readable(c) {
    if (c.m !== "tools/call" || !c.a || c.u[1]) return "";
    try { return (JSON.parse(c.a).content || []).filter((p) => p && p.type === "text" && typeof p.text === "string").map((p) => p.text).join("\n"); } catch { return ""; }
  }
  function link(c) {
    return el("button", { type: "button", class: "link", onclick: () => { reveal(c); openDetail(); } }, (c.in ? "← " : "") + line(c.m + " " + (c.nm || "")) + (notification(c) ? "" : ", " + duration(c.d)));
  }
  function openDetail() {
    const c = state.selected;
    if (!c) return;
    const facts = el("dl");
    const fact = (label, value, bad) => { if (value) facts.append(el("dt", {}, label), el("dd", bad ? { class: "bad" } : {}, value instanceof Node ? value : line(value))); };
    const outcome = c.f ? "✗ " + c.f : unanswered(c) ? "no answer recorded" : notification(c) ? "notification" : c.o === "success" ? "ok" : c.o || "";
    fact("Outcome", outcome, !!c.f);
    fact("Rules", c.ru);
    fact("Started", day(c.t) + " " + clock(c.t, 3));
    if (!notification(c)) fact("Took", duration(c.d));
    const usual = medians.get(target(c));
    if (usual && !c.k) fact("Median", duration(usual.ms) + " of " + usual.n + " calls" + (c.d - (c.wu || 0) > 3 * usual.ms ? "; this one took " + Math.round((c.d - (c.wu || 0)) / usual.ms) + " times as long" : ""));
    fact("Server started for", c.ws ? duration(c.ws) : "");
    fact("Queued for", c.wq ? duration(c.wq) : "");
    fact("User answered in", c.wu ? duration(c.wu) : "");
    fact("Direction", (c.in ? [c.v || "server", c.c || (c.r ? count(c.r, "client") : "client")] : [c.c || "Goblin", c.v || "Goblin"]).join(" → "));
    fact("Session", c.s);
    fact("Profile", c.pr);
    fact("Name at the server", c.og);
    fact("Ids", [c.ic ? c.ic + " (client)" : "", c.is ? c.is + " (server)" : ""].filter(Boolean).join(", "));
    fact("Number", c.n ? String(c.n) : "");
    if (c.up) fact("Caused by", byNumber.has(c.up) ? link(byNumber.get(c.up)) : "request " + c.up + ", not in this page");
    const parts = el("div", { class: "split" + (c.f ? " bad" : ""), "aria-hidden": "true" });
    for (const [name, ms] of [["start", c.ws], ["queue", c.wq]]) if (ms > 0) { const i = el("i", { class: name }); i.style.width = (ms / c.d) * 100 + "%"; parts.append(i); }
    if (c.wu > 0) { const i = el("i", { class: "user" }); i.style.width = (c.wu / c.d) * 100 + "%"; i.style.marginLeft = "auto"; parts.append(i); }
    const below = (c.n && children.get(c.n)) || [];
    const caused = below.slice(0, 200).map((x) => el("li", {}, el("span", { class: "dim" }, "+" + duration(x.t - c.t) + "  "), link(x), notification(x) && x.p ? el("div", { class: "dim" }, line(x.p.slice(0, 200))) : null));
    const text = readable(c);
    detail.replaceChildren(...[
      el("div", { class: "head" }, el("h2", {}, line(c.m + (c.nm ? " " + c.nm : ""))), el("button", { type: "button", class: "small", "aria-label": "Close details", onclick: () => { closeDetail(); scroll.focus(); } }, "✕")),
      facts, c.ws || c.wq || c.wu ? parts : null,
      ...body(c.m === "tools/call" ? "Arguments" : "Params", c.p && c.m === "tools/call" ? toolArguments(c) : c.p, c.u[0], c.z[0]),
      ...(text ? [el("h3", {}, "Text of the result", copyButton(text)), el("pre", { tabindex: "0" }, visible(text))] : []),
      ...(notification(c) ? [] : body(c.f && !c.a ? "Answer" : c.f && c.o !== "tool error" ? "Error" : "Result", c.a, c.u[1], c.z[1])),
      ...(caused.length ? [el("h3", {}, "Caused: " + below.length), el("ul", { class: "plain" }, ...caused)] : []),
    ].filter((x) => x != null));
    detail.hidden = false;
    detail.scrollTop = 0;
    render();
  }
  // toolArguments returns the member arguments if it can be found without loss.
  function toolArguments(c) {
    if (c.u[0]) return c.p;
    let depth = 0, from = -1, key = "";
    for (const m of c.p.matchAll(/"(?:[^"\\]|\\.)*"|[{}\[\],]/g)) {
      const token = m[0];
      if (token === "{" || token === "[") { if (depth === 1 && key === '"arguments"') from = m.index; depth++; }
      else if (token === "}" || token === "]") { depth--; if (from >= 0 && depth === 1) return c.p.slice(from, m.index + 1); }
      else if (depth === 1) key = token === "," ? "" : token;
    }
    return c.p;
  }

  // reveal selects a call and scrolls to it, if necessary without filters.
  function reveal(c) {
    const find = () => rows.findIndex((r) => r.call === c);
    state.selected = c; cursorGroup = null;
    if (find() < 0) {
      state.query = $("filter").value = ""; state.failures = $("failures").checked = false; state.closed.clear();
      if (notification(c)) state.notifications = $("notifications").checked = true;
      layout();
    }
    if (c.end < state.from || c.t > state.to) { const span = state.to - state.from; setWindow(c.t - span * 0.2, c.t + span * 0.8); }
    scrollTo(find());
  }
  function scrollTo(i) {
    const h = rowHeight();
    if (i < 0) return;
    if (i * h < scroll.scrollTop) scroll.scrollTop = i * h;
    else if ((i + 1) * h > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = (i + 1) * h - scroll.clientHeight;
    render();
  }
  function move(by) {
    if (!rows.length) return;
    const now = rows.indexOf(cursorRow());
    const i = now < 0 ? (by < 0 ? rows.length - 1 : 0) : Math.min(rows.length - 1, Math.max(0, now + by));
    const r = rows[i];
    if (r.group !== undefined) { state.selected = null; cursorGroup = r.group; } else { state.selected = r.call; cursorGroup = null; }
    if (state.selected && !detail.hidden) openDetail();
    scrollTo(i);
  }

  // --- Input --------------------------------------------------------------
  scroll.addEventListener("scroll", () => requestAnimationFrame(render));
  scroll.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const page = Math.max(1, Math.floor(scroll.clientHeight / rowHeight()) - 1);
    const does = {
      ArrowDown: () => move(1), ArrowUp: () => move(-1), j: () => move(1), k: () => move(-1), PageDown: () => move(page), PageUp: () => move(-page),
      Home: () => move(-rows.length), End: () => move(rows.length), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
      Enter: () => { const r = cursorRow(); if (r && r.call) openDetail(); else if (r) toggle(r.group); }, " ": () => does.Enter(),
    };
    if (does[e.key]) { e.preventDefault(); does[e.key](); }
  });
  document.addEventListener("keydown", (e) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== "checkbox";
    if (e.key === "Escape") {
      if (!detail.hidden) { closeDetail(); scroll.focus(); } else if (typing && $("filter").value) { $("filter").value = ""; state.query = ""; layout(); } else if (typing) scroll.focus();
      return;
    }
    if (typing || e.ctrlKey || e.metaKey || e.altKey || $("view-time").hidden) return;
    const does = { "/": () => $("filter").focus(), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => { whole(); render(); } };
    if (Object.hasOwn(does, e.key)) { e.preventDefault(); does[e.key](); }
  });
  $("filter").addEventListener("input", (e) => { state.query = e.target.value; scroll.scrollTop = 0; layout(); });
  $("filter").addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === "ArrowDown") { e.preventDefault(); scroll.focus(); if (!cursorRow()) move(1); } });
  $("group").addEventListener("change", (e) => { state.group = e.target.value; state.closed.clear(); scroll.scrollTop = 0; layout(); });
  $("notifications").addEventListener("change", (e) => { state.notifications = e.target.checked; layout(); });
  $("failures").addEventListener("change", (e) => { state.failures = e.target.checked; layout(); });
  window.addEventListener("resize", render);

  const tabs = ["time", "servers", "changes"];
  function openTab(name) {
    for (const t of tabs) {
      $("view-" + t).hidden = t !== name;
      $("tab-" + t).setAttribute("aria-selected", String(t === name));
      $("tab-" + t).tabIndex = t === name ? 0 : -1;
    }
    if (name === "time") render();
    $("keys").style.visibility = name === "time" ? "" : "hidden";
  }
  for (const [i, t] of tabs.entries()) {
    $("tab-" + t).onclick = () => openTab(t);
    $("tab-" + t).addEventListener("keydown", (e) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (by) { const next = tabs[(i + by + tabs.length) % tabs.length]; openTab(next); $("tab-" + next).focus(); }
    });
  }

  const themes = ["auto", "dark", "light"];
  $("theme").onclick = () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % themes.length];
    if (next === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = next;
    $("theme").textContent = "Theme: " + next;
    render();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);

  // --- Servers and changes ------------------------------------------------
  const used = new Map();
  for (const c of calls) if (!c.k && !c.in && c.v) { const u = used.get(c.v) || { n: 0, bad: 0, ms: [] }; u.n++; if (c.f) u.bad++; u.ms.push(c.d - (c.wu || 0)); used.set(c.v, u); }
  const usage = (name) => {
    const u = used.get(name);
    if (!u) return "no requests";
    u.ms.sort((a, b) => a - b);
    return count(u.n, "request") + ", " + u.bad + " failed, median " + duration(u.ms[u.ms.length >> 1]) + ", slowest " + duration(u.ms[u.ms.length - 1]);
  };
  const known = new Set(meta.servers.map((s) => s.name));
  const servers = [...meta.servers, ...[...used.keys()].filter((n) => !known.has(n)).sort().map((name) => ({ name, lists: {} }))];
  $("view-servers").append(...(servers.length ? servers.map((s) => el("div", { class: "card" },
    el("div", { class: "head" }, el("h2", {}, line(s.name)), el("button", { type: "button", class: "small", onclick: () => { openTab("time"); $("filter").value = state.query = "server:\"" + s.name.replaceAll('"', "") + "\""; layout(); } }, "Show requests")),
    el("div", { class: "dim" }, line([s.title, s.transport, s.protocol].filter(Boolean).join(" · "))),
    el("div", {}, usage(s.name)),
    ...Object.entries(s.lists).filter(([, list]) => list && list.length).map(([kind, list]) => el("details", {}, el("summary", {}, kind[0].toUpperCase() + kind.slice(1) + " ", el("span", {}, String(list.length))),
      ...list.map((entry) => el("details", {}, el("summary", {}, line(entry.n) + " ", el("span", {}, line(entry.x || "").slice(0, 160))), entry.j ? el("pre", { tabindex: "0" }, visible(pretty(entry.j))) : el("p", { class: "dim" }, "The definition is too large for this page."))))),
    s.more ? el("p", { class: "dim" }, count(s.more, "more entr") .replace(/entrs$/, "entries") + " not in this page") : null)) : [el("p", { class: "empty" }, "No servers recorded")]));
  $("view-changes").append(meta.events.length ? el("table", {}, el("tbody", {}, ...meta.events.map((e) => el("tr", {}, el("td", {}, day(e.t) + " " + clock(e.t)), el("td", {}, line(e.v || "")),
    el("td", e.b ? { class: "badtext" } : {}, (e.b ? "✗ " : "") + line(e.x), ...(e.w || []).map((w) => el("div", { class: "dim" }, line(w)))))))) : el("p", { class: "empty" }, "No changes recorded"));
  if (meta.moreEvents) $("view-changes").append(el("p", { class: "note" }, count(meta.moreEvents, "further change") + " not in this page"));

  $("about").textContent = calls.length ? line((meta.config ? meta.config + " · " : "") + day(first) + " " + clock(first) + " – " + (day(first) === day(last) ? "" : day(last) + " ") + clock(last) + " (" + duration(last - first) + ") · " + count(total, "request") + (meta.goblin ? " · recorded by Goblin " + meta.goblin : "")) : "";
  for (const text of [meta.note, meta.lost ? count(meta.lost, "line") + " missing: the recorder had to drop them" : ""]) if (text) $("notes").append(el("p", { class: "note" }, line(text)));
  $("tab-changes").textContent = "Changes " + (meta.events.length || "");
  layout();
})();
