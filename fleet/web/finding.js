// SPDX-License-Identifier: Apache-2.0
// A finding that is kept: what it says, its evidence, and what a reader does about it.
import { make, refill, table } from "./dom.js";
import { send } from "./daemon.js";
import { figures, percent, when, words } from "./format.js";

// The kinds of findings, and what each means.
export const kindTexts = {
  outlier: "slower than its peers", slower: "slower than it was", group: "a group that is slower", drift: "a class that drifts", stale: "not measured lately",
  down: "does not respond", reinstalled: "installed anew", twin: "a copy of another node", duplicate: "two nodes have this name", alien: "responds as another node",
  rewound: "restored from a copy", clock: "its clock is wrong", poison: "its data end the process that reads them", version: "its version does not fit",
};
export const states = ["forming", "open", "acknowledged", "fixed", "closed"];

const MEMBERS = 20; // nodes of a group that are links

export const address = (query) => "#/findings" + (String(query) ? "?" + query : "");
const number = (v) => v === null || v === undefined ? "–" : figures(v);
const nodeLink = (name) => make("a", { href: `#/nodes/${name}` }, name);

function subject(f) {
  const by = f.percent === null ? "" : `, ${percent(f.percent)}`;
  return [f.node ? nodeLink(f.node) : f.class ? make("a", { href: `#/classes/${f.class}` }, `class ${f.class.slice(0, 8)}`) : "", `: ${kindTexts[f.what] || words(f.what)}${by}`, f.grade && ` (${f.grade})`];
}

function facts(f) {
  const worst = f.evidence && f.evidence.worst;
  const interval = f.lo === null || f.hi === null ? null : `${percent(f.lo)} to ${percent(f.hi)}`;
  const rows = [["Since (UTC)", when(f.since)], ["Found (UTC)", when(f.found)], ["Seen last (UTC)", when(f.seen)], ["Times", f.times > 1 && String(f.times)],
    ["Drained in Slurm (UTC)", f.drained && when(f.drained)],
    ["95 % interval", interval], ["Value", worst && `${number(worst.value)} ${worst.unit}`], ["Median of its peers", worst && number(worst.class_median)],
    ["Limit", worst && worst.limit !== null && number(worst.limit)], ["Peers", worst && String(worst.nodes)], ["Metrics that are worse", f.evidence && f.evidence.of && `${f.evidence.metrics_worse} of ${f.evidence.of}`]];
  return make("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function differences(f) {
  const list = f.evidence && f.evidence.differs_from_peers || [];
  return list.length > 0 && make("details", {}, make("summary", {}, `${list.length} ${list.length === 1 ? "fact differs" : "facts differ"} from the peers`),
    table("Facts that differ from the peers", [{ text: "fact", kind: "text" }, { text: "here", kind: "text" }, { text: "peers", kind: "text" }],
      list.map((d) => [words(d.fact), d.node ?? "not known", `${d.peers ?? "not known"}${d.peers_share === null || d.peers_share === undefined ? "" : ` (${Math.round(100 * d.peers_share)} %)`}`])));
}

function members(f) {
  const nodes = f.evidence && f.evidence.nodes || [];
  if (f.node || !nodes.length) return null;
  return make("p", { class: "links" }, nodes.slice(0, MEMBERS).map(nodeLink), nodes.length > MEMBERS && `and ${nodes.length - MEMBERS} more`);
}

// What a reader may do with a finding in each state.
const actions = [["acknowledged", "Acknowledge", ["open"]], ["fixed", "Mark as fixed", ["open", "acknowledged"]], ["open", "Open again", ["acknowledged", "fixed"]]];

// A finding as an item of a list. It is drawn anew when it is changed.
export function item(finding) {
  const root = make("li", { class: `card finding ${finding.grade || finding.what}`, "data-id": finding.id });

  function draw(f, said) {
    const note = make("input", { id: `note-${f.id}`, maxlength: "500", autocomplete: "off", value: f.note || "" }), status = make("p", { role: "status" }, said);
    const mark = (state, text) => send(`v1/fleet/findings/${f.id}`, { state, note: note.value.trim() }, "PUT").then(
      (now) => { // the response has what changed
        draw({ ...f, state: now.state, note: note.value.trim(), by: now.by }, text);
        root.querySelector("h2").focus();
      }, (error) => {
        status.textContent = error.message;
        status.setAttribute("role", "alert");
      });
    const mayNote = states.slice(1, 4).includes(f.state), may = actions.filter(([, , from]) => from.includes(f.state));
    root.dataset.state = f.state;
    refill(root, make("h2", { tabindex: "-1" }, subject(f)), make("p", {}, f.text), facts(f), members(f), differences(f),
      make("p", { class: "links" }, make("span", { class: `state ${f.state}` }, f.state), f.by && make("span", { class: "quiet" }, ` by ${f.by}`), f.note && `: ${f.note}`, " ", f.metric && f.node && make("a", { href: `#/nodes/${f.node}?metric=${f.metric}` }, `History of ${f.metric}`),
        f.class && f.node && make("a", { href: `#/classes/${f.class}` }, "Its class")),
      mayNote && make("form", { class: "action", "aria-label": `Finding ${f.id}`, onsubmit: (event) => {
        event.preventDefault();
        mark(f.state, "The note is stored.");
      } }, make("label", { for: note.id }, "Note", note), may.map(([state, text]) => make("button", { type: "button", "data-to": state, onclick: () => mark(state, `It is ${state}.`) }, text)),
      make("button", { type: "submit", class: "plain" }, "Store the note")), status);
  }

  draw(finding, "");
  return root;
}
