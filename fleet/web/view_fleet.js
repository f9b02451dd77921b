// SPDX-License-Identifier: Apache-2.0
// The first view: is the fleet fine? The verdict first, then every node, coverage by class, and how
// the collector does.
import { make, refill, table } from "./dom.js";
import { get } from "./daemon.js";
import { age, bytes, percent, when, words } from "./format.js";
import { count, expand, whole } from "./names.js";
import { kindOf, legend, tiles } from "./tiles.js";

export const title = "Fleet";

const AGAIN_MS = 30000;  // unchanged, it costs the collector some milliseconds
const LISTED = 10;       // slow nodes below the verdict
const STATES = ["up", "new", "missed", "late", "down", "gone"];

export const nodeLink = (name) => make("a", { href: `#/nodes/${name}` }, name);
const classLink = (hash) => make("a", { href: `#/classes/${hash}` }, hash.slice(0, 8));

// --- What there is ----------------------------------------------------------------------------

// Every node that a source names or that has a run, in order. Of several racks of a node the first counts.
function join(states, judged, racks) {
  const at = new Map(), order = new Intl.Collator("en", { numeric: true });
  for (const [i, name] of expand(judged.nodes).entries())
    at.set(name, { name, state: "gone", grade: judged.grade[i], percent: judged.percent[i], metric: judged.metrics[judged.metric[i]] || "", class: judged.hashes[judged.class[i]] || "" });
  let added = false;
  for (const [state, runs] of Object.entries(states))
    for (const name of expand(runs)) {
      if (!at.has(name)) {
        at.set(name, { name, grade: 0, percent: null, metric: "", class: "" });
        added = true;
      }
      at.get(name).state = state;
    }
  for (const { rack, nodes } of racks)
    for (const name of expand(nodes)) if (at.has(name)) at.get(name).rack ||= rack;
  const nodes = [...at.values()].filter((n) => n.state !== "gone");
  return added ? nodes.sort((a, b) => order.compare(a.name, b.name)) : nodes;
}

// --- The verdict ------------------------------------------------------------------------------

function stateText({ nodes, states }) {
  const parts = STATES.filter((s) => s !== "gone" && states[s]).map((s) => `${whole(states[s])} ${s}`);
  return `${count(nodes, "node")}: ${parts.join(", ") || "no source names any"}.`;
}

function headline(judged, nodes) {
  const slow = nodes.filter((n) => n.grade === 1 || n.grade === 2);
  if (slow.length) return slow.length === 1 ? `${slow[0].name} is slow` : `${whole(slow.length)} nodes are slow`;
  if (judged.groups) return `${count(judged.groups, "group")} of nodes ${judged.groups === 1 ? "is" : "are"} slower than the others`;
  return judged.tested_nodes ? `${count(judged.tested_nodes, "judged node")} ${judged.tested_nodes === 1 ? "is" : "are"} fine` : "No verdict yet";
}

const problems = (status) => [status.sources_problem, status.store_problem, status.clock_problem].filter(Boolean);

function tone(status, judged) {
  const { late, down } = status.states;
  if (judged.sure) return "bad";
  if (judged.suspect || judged.groups || late || down || problems(status).length || !status.store_ready) return "warn";
  return judged.tested_nodes ? "good" : "none";
}

// The worklist, by grade.
function openText({ known, open }) {
  const kinds = Object.values(open), sum = (grade) => kinds.reduce((n, kind) => n + kind[grade], 0);
  const parts = ["sure", "suspect"].map((grade) => [sum(grade), grade]).concat([[sum("ungraded"), "of groups and classes"]]).filter(([n]) => n).map(([n, grade]) => `${whole(n)} ${grade}`);
  return known && ["Open ", make("a", { href: "#/findings" }, "findings"), `: ${parts.join(", ") || "none"}.`];
}

function banner(root, status, judged, nodes) {
  const fresh = judged && judged.classes.reduce((sum, c) => sum + c.fresh, 0);
  const found = judged && [judged.sure && `${whole(judged.sure)} sure`, judged.suspect && `${whole(judged.suspect)} suspect`, judged.groups && count(judged.groups, "group")].filter(Boolean);
  root.className = `banner ${judged ? tone(status, judged) : "none"}`;
  root.toggleAttribute("data-judged", Boolean(judged));
  refill(root, make("h2", { id: "verdict" }, judged ? headline(judged, nodes) : count(status.nodes, "node")), make("p", {}, stateText(status)),
    judged && status.nodes > 0 && make("p", {}, `${whole(fresh)} ${fresh === 1 ? "has" : "have"} a run of the last days, and ${whole(judged.tested_nodes)} ${judged.tested_nodes === 1 ? "was" : "were"} judged ${when(judged.evaluated)} UTC.`),
    found && make("p", {}, found.length ? `Found: ${found.join(", ")}. ` : "Nothing was found. ", openText(status.findings)),
    problems(status).map((text) => make("p", { role: "alert" }, text)));
}

function slowest(nodes) {
  const list = nodes.filter((n) => n.grade).sort((a, b) => kindRank(a) - kindRank(b) || b.percent - a.percent);
  if (!list.length) return null;
  const shown = list.slice(0, LISTED);
  return make("section", { class: "card", id: "slow" }, make("h2", {}, "Slow nodes"), nodeTable(`The ${shown.length === list.length ? "" : `worst ${shown.length} of `}${count(list.length, "node")} that ${list.length === 1 ? "is" : "are"} slow`, shown));
}
const kindRank = (n) => ({ 2: 0, 1: 1, 3: 2 })[n.grade];

function nodeTable(caption, nodes) {
  const columns = [{ text: "Node", kind: "text" }, { text: "State", kind: "text" }, { text: "Verdict", kind: "text" }, "Worse by", { text: "Worst metric", kind: "text" }, { text: "Class", kind: "text" }];
  return table(caption, columns, nodes.map((n) => [nodeLink(n.name), make("span", { class: `state ${n.state}` }, n.state), n.percent === null ? "not judged" : n.grade ? kindOf(n).text : "fine",
    n.percent === null ? "–" : percent(n.percent), n.metric || "–", n.class ? classLink(n.class) : "–"]));
}

// --- Every node --------------------------------------------------------------------------------

function map(nodes, problem) {
  if (!nodes.length) return make("section", { class: "card", id: "tiles" }, make("h2", {}, "Nodes"), make("p", {}, "The setting ", make("code", {}, "source"), " of the collector states where its nodes are listed."));
  const readout = make("p", { class: "readout", id: "pointed", role: "status" }), below = make("div", { id: "unfolded", onkeydown: (event) => event.key === "Escape" && fold() });
  const invite = "Point at a tile to read it, and click it to open the node. The name of a group lists its nodes.";
  let opened = null;
  const fold = () => {
    const button = opened;
    button.setAttribute("aria-expanded", "false");
    opened = null;
    below.replaceChildren();
    button.focus();
  };
  const unfold = (group, button) => {
    if (opened === button) return fold();
    if (opened) opened.setAttribute("aria-expanded", "false");
    opened = button;
    button.setAttribute("aria-expanded", "true");
    const heading = make("h3", { tabindex: "-1" }, group.label);
    below.replaceChildren(heading, nodeTable(`Nodes of ${group.label}`, group.nodes));
    return heading.focus();
  };
  const { element } = tiles(nodes, { unfold, read: (text) => { readout.textContent = text; }, open: (node) => { location.hash = `#/nodes/${node.name}`; } });
  readout.textContent = invite;
  const find = make("input", { id: "find", autocomplete: "off", spellcheck: "false" }), wrong = make("p", { role: "alert" });
  const names = new Set(nodes.map((n) => n.name));
  const search = make("form", { class: "filters", onsubmit: (event) => {
    event.preventDefault();
    const name = find.value.trim();
    wrong.textContent = names.has(name) ? "" : `No source names a node "${name}".`;
    if (names.has(name)) location.hash = `#/nodes/${name}`;
  } }, make("label", {}, "Find a node", find), make("button", { type: "submit", class: "plain" }, "Open"), wrong);
  return make("section", { class: "card", id: "tiles" }, make("h2", {}, "Nodes"), search, problem && make("p", { role: "alert" }, `The racks cannot be read: ${problem}`), legend(nodes), readout, element, below);
}

// --- Coverage and the collector ------------------------------------------------------------------

function coverage(classes, nodes) {
  const up = new Map();
  for (const n of nodes) if (n.state === "up") up.set(n.class, (up.get(n.class) || 0) + 1);
  const columns = [{ text: "Class", kind: "text" }, { text: "CPU", kind: "text wide" }, { text: "Shape", kind: "text wide" }, "Nodes", "Up", "Fresh", "Enough runs", "Set-ups", { text: "Newest run (UTC)", kind: "text" }];
  return make("section", { class: "card", id: "coverage" }, make("h2", {}, "Coverage"), classes.length ? table("Classes of hardware", columns, classes.map((c) => [classLink(c.class), c.cpu || "not known", c.shape || "not known",
    whole(c.nodes), whole(up.get(c.class) || 0), whole(c.fresh), whole(c.enough_runs), whole(c.setups), when(c.newest)])) : make("p", {}, "No run is stored yet."));
}

function collector(status) {
  const holds = status.store_bytes === null ? "not known yet" : `${whole(status.store_runs)} runs, ${bytes(status.store_bytes)}`;
  const facts = [["Store", holds], ["Backlog", bytes(status.backlog_bytes)], ["Runs stored since its start", whole(status.runs_stored)], ["Requests on the way", whole(status.in_flight)],
    ["Requests that failed", `${whole(status.failed)} of ${whole(status.requests)}`], ["Each node is contacted every", age(status.every_s)], ["Version", status.version], ["Running since (UTC)", when(status.started)]];
  const outcomes = Object.entries(status.outcomes).filter(([, n]) => n);
  return make("section", { class: "card", id: "collector" }, make("h2", {}, "Collector"), make("dl", { class: "facts" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    outcomes.length > 0 && make("p", {}, `Pages that were not stored as usual: ${outcomes.map(([name, n]) => `${words(name)} (${count(n, "node")})`).join(", ")}.`),
    make("p", {}, problems(status).length ? "" : "All sources can be read, and the store is open."));
}

// --- The view ------------------------------------------------------------------------------------

export async function show(root) {
  const top = make("section", { class: "banner none", "aria-labelledby": "verdict" }), body = make("div");
  let seen = "", timer = 0, stopped = false;

  async function fill() {
    const wanted = ["v1/fleet/status", "v1/fleet/states", "v1/fleet/tiles", "v1/fleet/racks"].map((path) => get(path));
    for (const one of wanted) one.catch(() => {}); // each is awaited below
    const status = await wanted[0];
    if (stopped) return;
    if (!seen) banner(top, status, null, []);
    if (!root.hasChildNodes()) root.append(top, body);
    const [states, judged, { racks, problem }] = await Promise.all([...wanted.slice(1, 3), wanted[3].catch((error) => ({ racks: [], problem: error.message }))]);
    if (stopped) return;
    const nodes = join(states, judged, racks), now = JSON.stringify([states, { ...judged, evaluated: 0 }, racks, problem]);
    banner(top, status, judged, nodes);
    const own = body.querySelector("#collector");
    if (now !== seen && !body.contains(document.activeElement)) {
      refill(body, slowest(nodes), map(nodes, problem), coverage(judged.classes, nodes), collector(status));
      seen = now;
    } else if (own) own.replaceWith(collector(status));
  }

  async function again() {
    if (document.visibilityState === "visible") await fill().catch(() => {}); // the frame says that it is lost
    if (!stopped) timer = setTimeout(again, AGAIN_MS);
  }

  await fill();
  timer = setTimeout(again, AGAIN_MS);
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
