// SPDX-License-Identifier: Apache-2.0
// The dashboard. Everything from the daemon goes into the page as text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children) element.append(child);
  return element;
}

// A token lives in this page only.
let token = "";

// Requests of the browser itself (pictures, event streams, links) carry no token, so all requests use this function.
async function call(path, options = {}) {
  if (token) options.headers = { ...options.headers, Authorization: "Bearer " + token };
  const answer = await fetch(path, options);
  if (answer.status === 401 || answer.status === 403) $("token-line").hidden = false;
  if (!answer.ok) {
    const problem = await answer.json();
    throw new Error((problem.member ? problem.member + ": " : "") + problem.detail);
  }
  return answer;
}

async function ask(path, options) {
  return (await call(path, options)).json();
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return (Number.isInteger(n) ? n : n.toFixed(1)) + " " + units[u];
}

// [0, 1, 2, 5] -> "0-2,5"
function ranges(ids) {
  const parts = [];
  for (const id of ids) {
    const last = parts.at(-1);
    if (last && last[1] === id - 1) last[1] = id;
    else parts.push([id, id]);
  }
  return parts.map(([a, b]) => (a === b ? a : `${a}-${b}`)).join(",") || "none";
}

const row = (cells, tag, kind) => make("tr", {}, ...cells.map((c, i) =>
  c instanceof Node ? make(tag, { class: kind[i] || "" }, c) : make(tag, { class: kind[i] || "" }, String(c))));

function showTopology(t) {
  const known = t.nodes.some((n) => n.distances && n.distances.length);
  const head = ["Node", "CPUs", "Memory", "Kind"];
  if (known) for (const n of t.nodes) head.push("to " + n.node);
  const rows = t.nodes.map((n) => row([n.node, ranges(n.cpus), bytes(n.memory_bytes), n.kind,
    ...(known ? n.distances : [])], "td", ["", "text", "", "text"]));
  $("nodes").replaceChildren(make("caption", {}, "Memory and distance (10 is local) of each node"),
    make("thead", {}, row(head, "th", ["", "text", "", "text"])), make("tbody", {}, ...rows));
}

// The host name of the daemon's node. Runs of other nodes are imports, and the page marks them.
let thisNode = "";

async function showNode() {
  const [node, topology, catalogue] = await Promise.all([ask("v1/node"), ask("v1/topology"), ask("v1/benchmarks")]);
  $("benchmarks").replaceChildren(...catalogue.benchmarks.map((b) => make("option", { title: b.title }, b.name)));
  thisNode = node.node;
  $("runs-of").options[0].textContent = `this node (${thisNode})`;
  $("node-name").textContent = node.node;
  $("node-cpu").textContent = node.cpu_model;
  document.title = "numaprobe · " + node.node;
  showTopology(topology);
}

// "0,1,2,5" -> "0-2,5". Lists in another order, and other texts, are not changed.
function short(list) {
  const ids = String(list).split(",").map(Number);
  return ids.length > 2 && ids.every((id, i) => Number.isInteger(id) && !(id <= ids[i - 1])) ? ranges(ids) : list;
}

const imported = (run) => run.source === "imported";

// A long text is cut. A tooltip shows all of it.
const cut = (text) => make("span", { class: "cut", title: text }, text);

// A column of the list: its heading, its text for a run, and whether it is shown. The node is shown for all nodes.
const columns = [
  ["", (r) => {
    const open = make("button", { type: "button", class: "link" }, "Run " + r.id);
    open.addEventListener("click", () => showRun(r.id, true).catch(complain));
    return open;
  }],
  ["Node", (r) => r.node, () => $("runs-of").value === "*"],
  ["State", (r) => r.state + (imported(r) ? ", imported" : "")],
  ["When (UTC)", (r) => (r.measured || r.created).slice(0, 16).replace("T", " ")],
  ["Benchmark", (r) => r.spec.benchmark],
  ["Sizes", (r) => cut(r.spec.size || "")],
  ["Ranks", (r) => cut(short(r.spec.cpus || r.spec.ranks))],
  ["Memory", (r) => cut(r.spec.targets || r.spec.numa)],
  ["Time", (r) => r.seconds === null ? "" : r.seconds.toFixed(1) + " s"],
  ["Label", (r) => cut(r.label || ""), (runs) => runs.some((r) => r.label)],
];

// Nodes in a list of all nodes become choices.
function offerNodes(runs) {
  const known = new Set([...$("runs-of").options].map((o) => o.value));
  for (const node of new Set(runs.map((r) => r.node)))
    if (node !== thisNode && !known.has(node)) $("runs-of").append(make("option", { value: node }, node));
}

function emptyText(of) {
  if (of === "*") return "No runs yet.";
  return of ? `No runs of ${of}.` : "No runs of this node yet. Imported runs are under all nodes.";
}

async function showRuns() {
  const of = $("runs-of").value;
  const { runs } = await ask("v1/runs?limit=20" + (of === "*" ? "" : "&node=" + encodeURIComponent(of || thisNode)));
  const shown = columns.filter(([, , there]) => !there || there(runs));
  const rows = runs.map((r) => row(shown.map(([, text]) => text(r)), "td",
    shown.map(([head]) => "text" + (head === "State" && r.state === "failed" ? " failed" : ""))));
  $("runs").replaceChildren(make("thead", {}, row(shown.map(([head]) => head), "th", shown.map(() => "text"))),
    make("tbody", {}, ...rows));
  $("runs-empty").textContent = emptyText(of);
  $("runs-empty").hidden = runs.length > 0;
  $("runs").hidden = runs.length === 0;
  offerNodes(runs);
  return runs;
}

$("runs-of").addEventListener("change", () => showRuns().catch(complain));

// From cool to hot over the logarithm of the values.
function heat(value, low, high) {
  const share = high > low ? Math.log(value / low) / Math.log(high / low) : 0;
  return `hsl(${Math.round(210 - 190 * share)} 75% 74%)`;
}

// Values of an axis for people: names, sizes or numbers.
function labels(axis) {
  return axis.labels || axis.values.map((v) => axis.unit === "bytes" ? bytes(v) : `${v}${axis.unit === "%" ? " %" : ""}`);
}

function heatTable(m) {
  const median = (i, j) => m.cells[i][j].median;
  const all = m.cells.flat().map((c) => c.median).filter((v) => v > 0);
  const low = Math.min(...all), high = Math.max(...all);
  const rows = labels(m.rows).map((name, i) => {
    const cells = m.cols.values.map((_, j) => {
      const value = median(i, j);
      const cell = make("td", { class: "heat" }, value === null ? "–" : value.toFixed(2));
      if (value > 0) cell.style.backgroundColor = heat(value, low, high);
      return cell;
    });
    return make("tr", {}, make("th", { scope: "row" }, m.rows.name + " " + name), ...cells);
  });
  const heads = labels(m.cols).map((name) => make("th", { scope: "col" }, name));
  return make("div", { class: "scroll" }, make("table", {},
    make("caption", {}, `${m.name}: median ${m.quantity.replace("_", " ")} in ${m.unit}, ${m.rows.name} by ${m.cols.name.replace("_", " ")}`),
    make("thead", {}, make("tr", {}, make("td"), ...heads)), make("tbody", {}, ...rows)));
}

// The picture is the one that the command line saves. The numbers are folded below it.
async function picture(id, m) {
  const words = (name) => name.replace("_", " ");
  const svg = await (await call(`v1/runs/${id}/matrix.svg?matrix=${encodeURIComponent(m.name)}`)).text();
  return make("figure", {}, make("img", { src: "data:image/svg+xml," + encodeURIComponent(svg),
    alt: `${words(m.quantity)} in ${m.unit}, ${words(m.rows.name)} by ${words(m.cols.name)}; the table below has the numbers` }),
  make("details", {}, make("summary", {}, "Numbers"), heatTable(m)));
}

function link(id, text, path) {
  const a = make("a", { href: `v1/runs/${id}/${path}` }, text);
  a.addEventListener("click", async (event) => {
    if (!token) return; // the browser does it by itself
    event.preventDefault();
    try {
      const file = URL.createObjectURL(await (await call(a.getAttribute("href"))).blob());
      make("a", { href: file, download: `run-${id}-${path}` }).click();
      setTimeout(() => URL.revokeObjectURL(file), 60000);
    } catch (error) {
      complain(error);
    }
  });
  return a;
}

function conditionLine({ severity, rank, text }) {
  const loud = severity === "warning" || severity === "error" ? `${severity}: ` : "";
  return loud + (rank === null ? "" : `rank ${rank}: `) + text;
}

async function showRun(id, focus) {
  const run = await ask("v1/runs/" + id);
  $("run").hidden = false;
  const other = run.node !== thisNode || imported(run) ? ` of ${run.node}${imported(run) ? ", imported" : ""}` : "";
  $("h-run").textContent = `Run ${id}${other}: ${run.state}`;
  $("run-text").textContent = [run.error && run.error.text, ...run.conditions.map(conditionLine)].filter(Boolean).join("\n");
  $("matrices").replaceChildren();
  if (run.finished) {
    const { matrices } = await ask(`v1/runs/${id}/matrix.json`);
    for (const m of matrices) $("matrices").append(await picture(id, m));
  }
  const links = [["JSON", "matrix.json"], ["CSV", "matrix.csv"], ["Log", "log"]].map(([text, path]) => link(id, text, path));
  $("run-links").replaceChildren(...(run.finished ? links : []));
  if (focus) $("h-run").focus();
}

function showProgress(run) {
  const p = run.progress;
  $("live").hidden = false;
  $("live-text").textContent = `Run ${run.id}: ${run.state}` + (p ? `, ${p.phase}, ${p.done} of ${p.total} cells` +
    (p.eta_ms > 0 ? `, about ${Math.ceil(p.eta_ms / 1000)} s left` : "") : "");
  if (p && p.total > 0) $("live-bar").value = p.done / p.total;
  else $("live-bar").removeAttribute("value");
}

let following = null;

function showEvent(text) {
  const [, name, data] = /^event: (.*)\n(?:.*\n)*?data: (.*)$/m.exec(text) || [];
  if (!data) return null; // a comment that keeps the connection alive
  const run = JSON.parse(data);
  showProgress(run);
  if (name === "state") showRuns().catch(complain);
  return ["queued", "running"].includes(run.state) ? null : run;
}

// Returns the run when it has finished, null if the stream ended before.
async function stream(id, signal) {
  const answer = await call(`v1/runs/${id}/events`, { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return null;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const text of events) {
      const run = showEvent(text);
      if (run) return run;
    }
  }
}

// Until the run has finished, or another one is followed. EventSource would not send a token.
async function follow(id) {
  if (following) following.abort();
  const mine = following = new AbortController();
  let run = null;
  while (!run && !mine.signal.aborted) {
    try {
      run = await stream(id, mine.signal);
    } catch (error) {
      if (!(error instanceof TypeError)) break; // a TypeError is the network; any other error was shown
    }
    if (!run) await new Promise((again) => setTimeout(again, 2000));
  }
  if (mine.signal.aborted) return;
  $("live").hidden = true;
  await showRun(id, false).catch(complain);
}

function complain(error) {
  $("start-error").textContent = error.message;
}

$("start").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("start-error").textContent = "";
  const spec = Object.fromEntries([...new FormData(event.target)].filter(([, value]) => value !== ""));
  if (spec.benchmark !== "latency") delete spec.size, delete spec.mode;
  try {
    const run = await ask("v1/runs", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(spec) });
    follow(run.id);
    await showRuns();
  } catch (error) {
    complain(error);
  }
});

$("token").addEventListener("change", (event) => {
  token = event.target.value.trim();
  begin().catch(complain);
});

async function begin() {
  $("start-error").textContent = "";
  await showNode();
  const runs = await showRuns();
  const going = runs.find((r) => r.state === "running") || runs.find((r) => r.state === "queued");
  const done = runs.find((r) => r.state === "succeeded" && !imported(r) && r.node === thisNode);
  if (going) follow(going.id);
  if (done) await showRun(done.id, false);
}

begin().catch(complain);
