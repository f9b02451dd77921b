// SPDX-License-Identifier: Apache-2.0
// Changes of set-ups that nodes had one after the other, and what one of them did to the metrics.
import { breakable, make, svg, table } from "./dom.js";
import { get } from "./daemon.js";
import { percent, when, words } from "./format.js";
import { count, whole } from "./names.js";
import { changeText } from "./time.js";

export const title = ({ query }) => query.get("fact") ? `Effect of ${words(query.get("fact"))}` : "Rollouts";

const LISTED = 50;           // rollouts
const BAR = 14, TALL = 40;   // units of a picture of waves
const WIDE = 220, ROW = 20;  // of an interval
const VERDICTS = { no: "no effect", worse: "worse", better: "better", no_controls: "no nodes to compare with", few_runs: "too few runs" };

const value = (v) => v ?? "none";
const address = ({ fact, from, to }) => `#/rollouts?${new URLSearchParams({ fact, from, to })}`;

// --- The list ------------------------------------------------------------------------------------

// Nodes by day, from the first to the last.
function waves(list) {
  const days = list.map((w) => Math.round(Date.parse(w.day) / 864e5)), first = Math.min(...days), last = Math.max(...days), most = Math.max(...list.map((w) => w.nodes));
  const wide = Math.max(1, last - first + 1), bar = Math.min(BAR, 640 / wide);
  return svg("svg", { class: "waves", viewBox: `0 0 ${Math.ceil(wide * bar)} ${TALL}`, width: Math.ceil(wide * bar), height: TALL, role: "img", "aria-label": `Nodes by day, at most ${most}` },
    list.map((w, i) => {
      const height = Math.max(2, (TALL - 2) * w.nodes / most);
      return svg("rect", { x: (days[i] - first) * bar, y: TALL - height, width: Math.max(1, bar - 2), height }, svg("title", {}, `${w.day}: ${count(w.nodes, "node")}`));
    }));
}

function rollout(r) {
  const rest = [r.remaining > 0 && `${count(r.remaining, "node")} still ${r.remaining === 1 ? "has" : "have"} the value before`, r.reverted > 0 && `${count(r.reverted, "node")} changed again`].filter(Boolean);
  return make("li", { class: "card" }, make("h2", {}, `${words(r.fact)}: ${value(r.from)} → ${value(r.to)}`),
    make("p", {}, `${count(r.nodes, "node")} on ${count(r.days, "day")}, ${when(r.first)} to ${when(r.last)} UTC${rest.length ? `; ${rest.join(", ")}` : ""}.`), waves(r.waves),
    make("details", {}, make("summary", {}, "Days"), table("Nodes by day", [{ text: "Day (UTC)", kind: "text" }, "Nodes", { text: "Names", kind: "text wide" }],
      r.waves.map((w) => [w.day, whole(w.nodes), w.names ?? "too many to list"]))),
    r.from !== null && r.to !== null && make("p", { class: "links" }, make("a", { href: address(r) }, "What did it do to the metrics?")));
}

async function list(root) {
  const found = await get(`v1/fleet/rollouts?limit=${LISTED}`);
  root.append(make("p", { role: "status", class: "quiet" }, found.rollouts.length ? `Changes since ${when(found.since)} UTC, those on most nodes first.` : `No fact of a node changed since ${when(found.since)} UTC.`),
    make("ul", { class: "findings", id: "rollouts" }, found.rollouts.map(rollout)));
  if (found.left_out > 0) root.append(make("p", { class: "quiet" }, `Smaller rollouts that are not shown: ${whole(found.left_out)}.`));
}

// --- One effect ------------------------------------------------------------------------------------

// The interval of each metric on one scale, beside the line of no effect.
function interval(m, reach) {
  const x = (v) => WIDE / 2 + v / reach * (WIDE / 2 - 6);
  return svg("svg", { class: `interval ${m.verdict}`, viewBox: `0 0 ${WIDE} ${ROW}`, width: WIDE, height: ROW, "aria-hidden": "true" }, svg("path", { class: "none", d: `M${WIDE / 2} 0V${ROW}` }),
    svg("path", { d: `M${x(m.lo)} ${ROW / 2}H${x(m.hi)}` }), m.verdict === "worse" || m.verdict === "better" ? svg("rect", { x: x(m.percent) - 4, y: ROW / 2 - 4, width: 8, height: 8 }) :
      svg("circle", { cx: x(m.percent), cy: ROW / 2, r: 4 }));
}

async function effect(root, query) {
  const request = new URLSearchParams([...query].filter(([name]) => ["fact", "from", "to"].includes(name)));
  const e = await get(`v1/fleet/effect?${request}`);
  const known = e.metrics.filter((m) => m.lo !== null && m.hi !== null && m.percent !== null), reach = Math.max(0.1, ...known.map((m) => Math.max(Math.abs(m.lo), Math.abs(m.hi))));
  const worse = e.metrics.filter((m) => m.verdict === "worse").length, better = e.metrics.filter((m) => m.verdict === "better").length;
  const judged = e.metrics.filter((m) => ["no", "worse", "better"].includes(m.verdict)).length;
  const said = worse ? `${count(worse, "metric")} of ${judged} became worse` : better ? `${count(better, "metric")} of ${judged} became better` :
    judged ? "No effect" : `No verdict${e.metrics.length ? `: ${VERDICTS[e.metrics[0].verdict]}` : ""}`;
  root.append(make("section", { class: `banner ${worse ? "bad" : judged ? "good" : "none"}` }, make("h2", { id: "verdict" }, said),
    make("p", {}, `${words(e.fact)}: ${value(e.from)} → ${value(e.to)}. ${count(e.nodes, "node")} changed on ${count(e.days, "day")}, ${when(e.first)} to ${when(e.last)} UTC. ${count(e.untouched, "node")} kept the value before.`),
    worse > 0 && better > 0 && make("p", {}, `${count(better, "metric")} became better.`),
    e.together.length > 0 && make("p", {}, "Changed with it, and cannot be distinguished from it: ", e.together.map(changeText).join("; "), ".")),
  make("section", { class: "card", id: "effect" }, table("Effect on each metric, the worse ones first. The bar is the 95 % interval, the thin line is no effect", [{ text: "Metric", kind: "text" }, "Effect", "95 % interval", { text: "", kind: "text" },
    { text: "Verdict", kind: "text" }, "Nodes", "Compared with", "Days", "Of them worse"],
  e.metrics.map((m) => [make("span", {}, breakable(m.metric)), m.percent === null ? "–" : percent(m.percent), m.lo === null ? "–" : `${percent(m.lo)} to ${percent(m.hi)}`, known.includes(m) ? interval(m, reach) : "", VERDICTS[m.verdict] || words(m.verdict),
    whole(m.treated), whole(m.controls), whole(m.waves), whole(m.worse_waves)]))), make("p", { class: "links" }, make("a", { href: "#/rollouts" }, "All rollouts")));
}

export async function show(root, { query }) {
  if (query.get("fact")) await effect(root, query);
  else await list(root);
}
