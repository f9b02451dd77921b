// SPDX-License-Identifier: Apache-2.0
// A metric over time: each run inside its interval, the level before and after each change, and what
// changed on the machine then. The daemon finds the changes (GET /v1/history).
import { breakable, make, table } from "./dom.js";
import { get, once } from "./daemon.js";
import { figures, percent, when } from "./format.js";
import { drawLines } from "./lines.js";
import { causeHead, changeText, drawLevels, HOUR, levels, timeTicks } from "./time.js";

export const title = ({ metric }) => metric ? `History of ${metric}` : "History";

const POINTS_MOST = 10000; // the daemon gives no more
const TABLE_ROWS = 200;    // newest values below the picture
const benchmarkOf = (metric) => metric.split(".")[0];
const notComputed = (runs) => `${runs === 1 ? "1 run is" : `${runs} runs are`} not computed yet`;
const address = (metric, node, variant) => `#/history/${metric}?${new URLSearchParams({ node, variant })}`;

// A change with its cause, as an item of a list.
function changeItem(change, unit) {
  const facts = change.fact_changes;
  return make("li", {}, make("b", {}, `${percent(change.percent)} `), `since ${when(change.at)} UTC (`,
    make("a", { href: `#/runs/${change.run}` }, `run ${change.run}`), `): ${figures(change.before)} → ${figures(change.after)} ${unit}. `,
    make("a", { href: `#/compare/${change.run_before}/${change.run}` }, `Compare with run ${change.run_before}`), ". ",
    causeHead(change),
    facts && facts.length > 0 && make("ul", {}, facts.map((f) => make("li", {}, changeText(f)))));
}

async function picture(root, h) {
  const points = h.points.map((p) => ({ x: Date.parse(p.measured), y: p.value, lo: p.lo ?? NaN, hi: p.hi ?? NaN, run: p.run, at: `run ${p.run}, ${when(p.measured)} UTC` }));
  const changes = h.change_points || [], first = points[0].x, last = points.at(-1).x, slack = (last - first) * 0.03 || HOUR;
  const list = levels(points, changes);
  return drawLines(root, {
    lines: [{ key: "metric", name: h.metric, series: 0, points, alone: points.length === 1 }],
    of: "run", alone: true, linear: true, title: `${h.metric} on node ${h.node} over time`, unit: h.unit,
    yTitle: h.unit ? `${h.unit}, ${h.better} is better` : `ratio, ${h.better} is better`,
    x: { range: [first - slack, last + slack], ticks: timeTicks, title: "measured (UTC)" },
    marks: changes.map((c, i) => ({ x: Date.parse(c.at), text: `${i + 1}: ${percent(c.percent)}` })),
    over: (canvas, place) => drawLevels(list, canvas, place),
    open: (p) => { location.hash = `#/runs/${p.run}`; },
    notes: [points.some((p) => Number.isFinite(p.lo)) && "The band is the 95 % interval of each value.", changes.length && "The thick line is the median between two changes."].filter(Boolean),
  });
}

function limits(h, limit) {
  const all = h.points.length, seen = h.detectable;
  return [
    h.more && (all < POINTS_MOST && limit < POINTS_MOST ? ["The newest ", String(all), " values are shown. ", make("a", { href: address(h.metric, h.node, h.variant) + `&limit=${POINTS_MOST}` }, "Show older ones")] :
      [`The newest ${all} values are shown. GET /v1/history with since and until has older ones.`]),
    h.change_points !== null && h.searched < all && [`Changes were searched in the newest ${h.searched} values.`],
    h.pending > 0 && [`The metrics of ${notComputed(h.pending)}, so changes were not searched.`],
    h.pending === 0 && !h.change_points.length && [all < 10 ? "A change is found from 5 runs on each side of it." : "No change was found."],
    seen && seen.one_run_percent !== null && [`A change of ${figures(seen.one_run_percent)} % is seen in one run, of ${figures(seen.three_run_percent)} % in three.`],
  ].filter(Boolean).map((text) => make("p", { class: "quiet note" }, text));
}

async function showMetric(root, metric, query) {
  const request = new URLSearchParams({ metric });
  for (const name of ["node", "variant", "limit"]) if (query.has(name)) request.set(name, query.get(name));
  const h = await get(`v1/history?${request}`);
  root.append(make("p", {}, h.help + "."));
  const fit = h.series.filter((s) => s.metric === metric && s.node === h.node);
  if (fit.length > 1) root.append(make("p", {}, make("label", { class: "beside" }, "Variant", make("select", { onchange: (event) => { location.hash = address(metric, h.node, event.target.value); } },
    fit.map((s) => make("option", { value: s.variant, selected: s.variant === h.variant }, s.variant || "default"))))));
  else if (h.variant) root.append(make("p", { class: "quiet" }, h.variant));
  if (!h.points.length) {
    root.append(make("p", {}, "No run in this time has this metric."));
    return null;
  }
  const changes = h.change_points || [];
  if (changes.length) root.append(make("h2", {}, changes.length === 1 ? "One change" : `${changes.length} changes`), make("ol", { class: "changes" }, changes.map((c) => changeItem(c, h.unit))));
  const figure = make("figure", { class: "chart" });
  root.append(figure);
  const stop = await picture(figure, h);
  figure.append(...limits(h, Number(query.get("limit") || 0)));
  const rows = [...h.points].reverse().slice(0, TABLE_ROWS).map((p) => [make("a", { href: `#/runs/${p.run}` }, String(p.run)), when(p.measured), p.value.toFixed(3),
    p.lo === null ? "" : p.lo.toFixed(3), p.hi === null ? "" : p.hi.toFixed(3)]);
  figure.append(make("details", {}, make("summary", {}, "Numbers"), table(`The newest ${rows.length} of ${h.points.length} values, ${h.unit || "ratio"}`,
    ["run", { text: "measured (UTC)", kind: "text" }, "value", "from", "to"], rows)));
  return stop;
}

// Every series of the chosen node as a choice, by benchmark.
function chooser(series, metric, node) {
  const metrics = [...new Set(series.map((s) => s.metric))], groups = [...new Set(metrics.map(benchmarkOf))];
  return make("label", { class: "beside" }, "Metric", make("select", { id: "metric", onchange: (event) => { location.hash = `#/history/${event.target.value}?${new URLSearchParams({ node })}`; } },
    !metrics.includes(metric) && make("option", { value: metric || "", selected: true }, metric || "choose"),
    groups.map((g) => make("optgroup", { label: g }, metrics.filter((m) => benchmarkOf(m) === g).map((m) => make("option", { value: m, selected: m === metric }, m))))));
}

function list(series) {
  const groups = [...new Set(series.map((s) => benchmarkOf(s.metric)))];
  return groups.map((g) => table(g, [{ text: "metric", kind: "text" }, { text: "variant", kind: "text" }, "values", "newest", { text: "unit", kind: "text" }, { text: "measured (UTC)", kind: "text" }, "run"],
    series.filter((s) => benchmarkOf(s.metric) === g).map((s) => [make("a", { href: address(s.metric, s.node, s.variant) }, breakable(s.metric)), s.variant, s.count ?? "many", figures(s.last_value), s.unit,
      when(s.last), make("a", { href: `#/runs/${s.last_run}` }, String(s.last_run))])));
}

export async function show(root, { metric, query }) {
  const [own, all] = await Promise.all([once("v1/node"), get("v1/history")]);
  const nodes = [...new Set([own.node, ...all.series.map((s) => s.node)])], node = query.get("node") || own.node;
  // 500 series of all nodes may not have all of this one.
  const { series, more_series, pending } = all.more_series ? await get(`v1/history?${new URLSearchParams({ node })}`) : { ...all, series: all.series.filter((s) => s.node === node) };
  if (!nodes.includes(node)) nodes.push(node);
  const card = make("section", { class: "card" });
  root.append(card);
  card.append(make("div", { class: "controls" }, chooser(series, metric, node), nodes.length > 1 && make("label", { class: "beside" }, "Node", make("select", { id: "node-of", onchange: (event) => {
    location.hash = `#/history${metric ? "/" + metric : ""}?${new URLSearchParams({ node: event.target.value })}`;
  } }, nodes.map((n) => make("option", { value: n, selected: n === node }, n === own.node ? `${n} (this node)` : n))))));
  if (more_series) card.append(make("p", { class: "quiet note" }, `The first ${series.length} series are listed. The command numaprobe history lists all.`));
  if (metric) return showMetric(card, metric, query);
  if (pending) card.append(make("p", { class: "quiet note" }, `The metrics of ${notComputed(pending)}.`));
  if (!series.length) card.append(make("p", {}, `No run of ${node} has metrics yet. `, make("a", { href: "#/start" }, "Start a run")));
  else card.append(...list(series));
  return null;
}
