// SPDX-License-Identifier: Apache-2.0
// One class of hardware: what it is, its set-ups, and each metric as a strip of dots, one per node,
// with the median and the limit.
import { make, svg, table } from "./dom.js";
import { get } from "./daemon.js";
import { figures, percent, words } from "./format.js";
import { count, whole } from "./names.js";

export const title = ({ hash }) => `Class ${hash.slice(0, 8)}`;

const WIDE = 480, TALL = 48, DOT = 4; // units of a strip; a dot and its place
const BEYOND = 8;                     // nodes beyond the limit that are links
const ROWS = TALL / DOT - 1;          // dots above each other; of more, each stands for several

const nodeLink = (name) => make("a", { href: `#/nodes/${name}` }, name);

// How a value is worse than the median, per cent. Of a share that is lost, as findings count it.
const worse = (m, v) => 100 * ((m.loss + v) / (m.loss + m.median) - 1) * (m.better === "more" ? -1 : 1);

// Dots of equal places are put above each other.
function dots(columns, share, shape) {
  return [...columns].map(([column, n]) => Array.from({ length: Math.max(1, Math.round(n / share)) }, (_, i) => shape(column * DOT + DOT / 2, TALL - DOT * (i + 0.5))).join("")).join("");
}

const circle = (x, y) => `M${x - 1.6} ${y}a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0 -3.2 0`;
const square = (x, y) => `M${x - 2} ${y - 2}h4v4h-4z`;

function strip(m, known, far) {
  const ends = known.concat(m.limit ?? []), lo = Math.min(...ends), hi = Math.max(...ends), slack = (hi - lo) * 0.02 || 1;
  const place = (v) => (v - lo + slack) / (hi - lo + 2 * slack) * (WIDE - DOT), column = (v) => Math.floor(place(v) / DOT);
  const near = new Map(), away = new Map();
  for (const v of known) {
    const where = far(v) ? away : near;
    where.set(column(v), (where.get(column(v)) || 0) + 1);
  }
  const share = Math.max(1, Math.max(...near.values(), ...away.values(), 1) / ROWS), line = (v, name) => svg("path", { class: name, d: `M${(place(v) + DOT / 2).toFixed(1)} 0V${TALL}` });
  const n = known.filter(far).length;
  return svg("svg", { class: "strip", viewBox: `0 0 ${WIDE} ${TALL}`, role: "img", "aria-label": `${count(known.length, "node")} from ${figures(lo)} to ${figures(hi)} ${m.unit}, ${n} beyond the limit` },
    svg("path", { class: "dots", d: dots(near, share, circle) }), svg("path", { class: "far", d: dots(away, share, square) }), m.median !== null && line(m.median, "median"), m.limit !== null && line(m.limit, "limit"));
}

function metric(m, names) {
  const known = (m.values || []).filter((v) => v !== null), far = (v) => m.limit !== null && (m.better === "more" ? v < m.limit : v > m.limit);
  const beyond = (m.values || []).map((v, i) => [v, names[i]]).filter(([v]) => v !== null && far(v)).sort((a, b) => worse(m, b[0]) - worse(m, a[0]));
  const facts = [m.median !== null && `median ${figures(m.median)} ${m.unit}`, m.mad_percent !== null && `spread ${figures(m.mad_percent)} %`, m.limit !== null && `limit ${figures(m.limit)} ${m.unit}`,
    m.kinds.length > 1 && `${m.kinds.length} hidden kinds`].filter(Boolean).join(", ");
  return make("li", { class: "card metric" }, make("h3", {}, m.metric), make("p", { class: "quiet note" }, facts || "Too few nodes for a median."), known.length ? strip(m, known, far) : m.values === null && make("p", { class: "quiet" }, "Its values are too many to be shown."),
    beyond.length > 0 && m.median !== null && make("p", { class: "note" }, "Worse than the limit: ", beyond.slice(0, BEYOND).map(([v, name], i) => [i ? ", " : "", nodeLink(name), ` ${percent(worse(m, v))}`]), beyond.length > BEYOND && `, and ${whole(beyond.length - BEYOND)} more`));
}

function about(c) {
  const facts = Object.entries(c.facts || {});
  return make("section", { class: "card", id: "facts" }, make("h2", {}, count(c.nodes, "node")), c.folded && make("p", {}, c.folded.length > 200 ? `${c.folded.slice(0, 200)} …` : c.folded),
    facts.length ? make("dl", { class: "facts" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, words(name)), make("dd", {}, String(value))))) : make("p", {}, "Its facts are not known yet."),
    c.setups.length > 1 && table("Set-ups of its nodes", [{ text: "Set-up", kind: "text" }, "Nodes", { text: "Differs in", kind: "text wide" }],
      c.setups.map((s) => [s.config.slice(0, 8), whole(s.nodes), Object.entries(s.differing_facts).map(([name, value]) => `${words(name)}: ${value ?? "not known"}`).join("; ")])));
}

export async function show(root, { hash }) {
  const c = await get(`v1/fleet/classes/${hash}`);
  root.append(about(c), make("h2", {}, "Metrics"), make("p", { class: "quiet" }, "Each dot is a node, or several where many are equal. The solid line is the median. From the dashed line on, this metric alone makes a node a finding."),
    make("ul", { class: "metrics", id: "metrics" }, c.metrics.map((m) => metric(m, c.names))));
}
