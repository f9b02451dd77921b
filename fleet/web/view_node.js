// SPDX-License-Identifier: Apache-2.0
// One node: how it responds, what is wrong with it, its metrics beside its peers, and one of them
// over time.
import { breakable, make, table } from "./dom.js";
import { get } from "./daemon.js";
import { age, figures, percent, when } from "./format.js";
import { item } from "./finding.js";
import { drawLines } from "./lines.js";
import { colour } from "./plot.js";
import { causeHead, changeText, DAY, drawLevels, HOUR, levels, timeTicks } from "./time.js";

export const title = ({ name }) => name;

const TABLE_ROWS = 200;   // newest values below the picture
const CLOCK_MS = 1000;    // a difference that is shown
const address = (name, metric) => `#/nodes/${name}?${new URLSearchParams({ metric })}`;
const either = (wanted) => wanted.catch((error) => { if (error.status === 404) return null; throw error; });

// --- The node ------------------------------------------------------------------------------------

function state(node, now) {
  const facts = [["State", make("span", { class: `state ${node.state}` }, node.state)], ["Last page stored (UTC)", when(node.received)], ["Newest run (UTC)", when(node.newest)],
    ["Version", node.version], ["Requests that failed since", node.failures > 0 && String(node.failures)],
    ["Its clock", Math.abs(node.skew_ms) >= CLOCK_MS && `${age(Math.abs(node.skew_ms) / 1000)} ${node.skew_ms > 0 ? "ahead" : "behind"}`]];
  const silent = node.received && node.state !== "up" ? ` Nothing was received for ${age((Date.parse(now) - Date.parse(node.received)) / 1000)}.` : "";
  return make("section", { class: "card", id: "state" }, make("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    node.problem && make("p", { role: "alert" }, `${node.problem}.${silent}`), node.outcome_text && make("p", {}, `${node.outcome_text}${node.other ? `: ${node.other}` : ""}.`),
    /^https?:/.test(node.url || "") && make("p", { class: "links" }, make("a", { href: node.url + "/" }, "The page of the node")));
}

function wrong(findings) {
  return make("section", { id: "wrong", "aria-labelledby": "wrong-title" }, make("h2", { id: "wrong-title" }, "Findings"), make("ul", { class: "findings" }, findings.map(item)));
}

// --- Its set-up ----------------------------------------------------------------------------------

const SETUP_CHANGES = 5; // shown; the others are counted

function setupCard({ since, setups, facts, fact_changes: changes }) {
  const shown = (changes || []).slice(0, SETUP_CHANGES), more = (changes || []).length - shown.length;
  return make("section", { class: "card", id: "setup" }, make("h2", {}, "Set-up"),
    make("p", {}, setups === 1 ? `The same since its first run, ${when(since)} UTC.` : `It has changed ${setups === 2 ? "once" : `${setups - 1} times`} since the first run, ${setups === 2 ? "" : "the last time "}at ${when(since)} UTC${shown.length ? ":" : "."}`),
    shown.length > 0 && make("ul", {}, shown.map((f) => make("li", {}, changeText(f))), more > 0 && make("li", {}, `${more} more`)),
    facts && make("details", {}, make("summary", {}, "Facts"), make("dl", { class: "facts" }, Object.entries(facts).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))))));
}

// --- Its metrics -----------------------------------------------------------------------------------

const number = (v) => v === null ? "–" : figures(v);

function metricsTable(name, { metrics, class: hash, evaluated }) {
  const rows = [...metrics].filter((m) => m.value !== null).sort((a, b) => (b.percent ?? -Infinity) - (a.percent ?? -Infinity)).map((m) => [make("a", { href: address(name, m.metric) }, breakable(m.metric)),
    m.percent === null ? "–" : percent(m.percent), `${number(m.value)} ${m.unit}`, number(m.class_median), number(m.limit), m.percentile === null ? "–" : `${Math.round(m.percentile)} %`, String(m.runs), String(m.nodes)]);
  return make("section", { class: "card", id: "metrics" }, make("h2", {}, "Metrics"), make("p", {}, `Medians of the newest runs, judged ${when(evaluated)} UTC. `, hash && make("a", { href: `#/classes/${hash}` }, "Its class")),
    rows.length ? table("Metrics of this node and its peers, the worst first", [{ text: "Metric", kind: "text" }, "Worse by", "Value", "Median of the peers", "Limit", "Better peers", "Runs", "Peers"], rows) :
      make("p", {}, "It has too few runs to be compared with its class."));
}

// --- One metric over time ---------------------------------------------------------------------------

function changeItem(change, unit) {
  const facts = change.fact_changes;
  return make("li", {}, make("b", {}, `${percent(change.percent)} `), `since ${when(change.at)} UTC: ${figures(change.before)} → ${figures(change.after)} ${unit}. `,
    causeHead(change), facts && facts.length > 0 && make("ul", {}, facts.map((f) => make("li", {}, changeText(f)))));
}

// Where the class was, day by day. A day is as wide as it is long.
function drawBand(days, { ctx, x, y }, place) {
  ctx.save();
  ctx.globalAlpha = 0.18;
  ctx.fillStyle = colour("--series-3");
  ctx.beginPath();
  for (const d of days) for (const at of [d.from, d.from + DAY]) ctx.lineTo(x(at), y(place(d.high)));
  for (const d of [...days].reverse()) for (const at of [d.from + DAY, d.from]) ctx.lineTo(x(at), y(place(d.low)));
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.strokeStyle = ctx.fillStyle;
  ctx.beginPath();
  for (const d of days) for (const [i, at] of [d.from, d.from + DAY].entries()) ctx[i ? "lineTo" : "moveTo"](x(at), y(place(d.median)));
  ctx.stroke();
  ctx.restore();
}

async function history(root, name, metric) {
  const h = await get(`v1/fleet/history?${new URLSearchParams({ node: name, metric, band: true })}`);
  const points = h.points.filter((p) => p.measured).map((p) => ({ x: Date.parse(p.measured), y: p.value, lo: p.lo ?? NaN, hi: p.hi ?? NaN, at: `${when(p.measured)} UTC` }));
  const figure = make("figure", { class: "chart" }), changes = h.change_points;
  if (changes.length) root.append(make("h3", {}, changes.length === 1 ? "One change" : `${changes.length} changes`), make("ol", { class: "changes" }, changes.map((c) => changeItem(c, h.unit))));
  root.append(figure);
  const first = points[0].x, last = points.at(-1).x, slack = (last - first) * 0.03 || HOUR, range = [first - slack, last + slack], list = levels(points, changes);
  const band = (h.band || []).filter((d) => d.low !== null && d.high !== null).map((d) => ({ from: Date.parse(d.day), low: d.low, median: d.median, high: d.high }));
  const stop = await drawLines(figure, {
    lines: [{ key: "metric", name: metric, series: 0, points, alone: points.length === 1 }],
    of: "run", alone: true, linear: true, title: `${metric} on node ${name} over time`, unit: h.unit, yTitle: `${h.unit}, ${h.better} is better`,
    x: { range, ticks: timeTicks, title: "measured (UTC)" }, marks: changes.map((c, i) => ({ x: Date.parse(c.at), text: `${i + 1}: ${percent(c.percent)}` })),
    reach: band.flatMap((d) => [d.low, d.high]), // a slow node is beside its band, and both are seen
    over: (canvas, place) => {
      if (band.length) drawBand(band, canvas, place);
      drawLevels(list, canvas, place);
    },
    notes: [band.length > 0 && "The green band is where 95 % of the nodes of its class were on each day, and the line in it is their median.", points.some((p) => Number.isFinite(p.lo)) && "The band along the line is the 95 % interval of each value.",
      changes.length > 0 && "The thick line is the median between two changes.", h.left_out > 0 && `${h.left_out} older values are not shown.`].filter(Boolean),
  });
  const rows = [...h.points].reverse().slice(0, TABLE_ROWS).map((p) => [when(p.measured), p.value.toFixed(3), p.lo === null ? "" : p.lo.toFixed(3), p.hi === null ? "" : p.hi.toFixed(3)]);
  figure.append(make("details", {}, make("summary", {}, "Numbers"), table(`The newest ${rows.length} of ${h.points.length} values, ${h.unit}`, [{ text: "measured (UTC)", kind: "text" }, "value", "from", "to"], rows)));
  return stop;
}

function chooser(name, metrics, metric) {
  const names = [...new Set([...metrics.map((m) => m.metric), metric])], benchmarks = [...new Set(names.map((m) => m.split(".")[0]))];
  return make("label", { class: "beside" }, "Metric", make("select", { id: "metric", onchange: (event) => { location.hash = address(name, event.target.value); } },
    benchmarks.map((b) => make("optgroup", { label: b }, names.filter((m) => m.split(".")[0] === b).map((m) => make("option", { value: m, selected: m === metric }, m))))));
}

// --- The view ----------------------------------------------------------------------------------------

export async function show(root, { name, query }) {
  const wanted = either(get(`v1/fleet/nodes/${encodeURIComponent(name)}/metrics`));
  wanted.catch(() => {}); // awaited below
  const [node, status, kept] = await Promise.all([either(get(`v1/fleet/nodes/${encodeURIComponent(name)}`)), get("v1/fleet/status"), either(get(`v1/fleet/findings?${new URLSearchParams({ node: name })}`))]);
  root.append(node ? state(node, status.now) : make("p", {}, "No source names this node now."));
  if (kept && kept.findings.length) root.append(wrong(kept.findings));
  const found = await wanted;
  if (!found) {
    root.append(make("p", {}, "No run of it is stored."));
    return null;
  }
  const worst = [...found.metrics].filter((m) => m.percent !== null).sort((a, b) => b.percent - a.percent)[0] || found.metrics.find((m) => m.value !== null) || found.metrics[0];
  const metric = query.get("metric") || worst && worst.metric, card = make("section", { class: "card", id: "history" }, make("h2", {}, "History"));
  root.append(card, ...(found.setup ? [setupCard(found.setup)] : []), metricsTable(name, found));
  if (!metric) {
    card.append(make("p", {}, "None of its runs has metrics."));
    return null;
  }
  card.append(make("div", { class: "controls" }, chooser(name, found.metrics, metric)));
  return history(card, name, metric);
}
