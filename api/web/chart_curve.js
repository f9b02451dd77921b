// SPDX-License-Identifier: Apache-2.0
// A matrix of a run as a picture that can be touched: lines over an axis of numbers, or a heat map.
// The forms, and when values are logarithmic, are those of the daemon's own pictures.
import { make, table } from "./dom.js";
import { call } from "./daemon.js";
import { bytes, words } from "./format.js";
import { drawHeat, labels } from "./chart_heat.js";
import { drawLines } from "./lines.js";
import { roundTicks } from "./plot.js";

const DOUBTFUL = 0.2;     // share of a cell's samples from which on it counts as disturbed
const SMALLEST_X = 0.5;   // 0 on a logarithmic axis: an empty message
const TABLE_ROWS = 256;   // of the numbers below; a CSV has them all
const COLOURS = 8;

// Rows by columns that are lines, and which of the two is the axis.
const FORMS = [["rank", "working_set"], ["pair", "message"], ["threads", "target", true], ["rank", "load"], ["rank", "pages"], ["rank", "chains"],
  ["rank", "stride"], ["threads", "working_set"], ["path", "load"], ["pair", "line"], ["threads", "operation", true]];

const formOf = (m) => FORMS.find(([rows, cols]) => m.rows.name === rows && m.cols.name === cols);

export const disturbed = (c) => c.disturbed > 0 && (c.n <= 1 || c.disturbed >= DOUBTFUL * (c.n + c.disturbed));

function cellText(c) {
  return (c.n > 1 ? `, ${c.n} samples` : "") + (c.disturbed > 0 ? `, ${c.disturbed} left out as disturbed` : "") + (c.converged === 0 ? ", not converged" : "");
}

// The numbers as a table, made when it is opened.
export function numbers(m) {
  const caption = `${m.name}: median ${words(m.quantity)} in ${m.unit}, ${m.rows.name} by ${words(m.cols.name)}`;
  const left = m.rows.values.length - TABLE_ROWS;
  const value = (c) => !c || c.median === null ? "–" : c.median.toFixed(2) + (disturbed(c) ? " *" : "");
  const details = make("details", { ontoggle: () => {
    if (details.childElementCount > 1) return;
    const rows = labels(m.rows).slice(0, TABLE_ROWS).map((name, i) => [`${m.rows.name} ${name}`, ...m.cells[i].map(value)]);
    details.append(table(caption, ["", ...labels(m.cols)], rows));
    if (m.cells.flat().some((c) => c && disturbed(c))) details.append(make("p", { class: "quiet note" }, "* disturbed: many samples were left out"));
    if (left > 0) details.append(make("p", { class: "quiet note" }, `${left} more rows are in the CSV`));
  } }, make("summary", {}, "Numbers"));
  return details;
}

// The sizes of the caches of the machine that a run was measured on, as marks on a logarithmic axis.
// The machine is a document of hwloc.
async function cacheMarks(run) {
  if (!run || !run.topology_hash) return [];
  const machine = new DOMParser().parseFromString(await (await call(`v1/topologies/${run.topology_hash}`)).text(), "text/xml");
  const sizes = new Map();
  for (const object of machine.querySelectorAll("object[cache_size]")) {
    const level = (/^L(\d)Cache$/.exec(object.getAttribute("type")) || [])[1], size = Number(object.getAttribute("cache_size"));
    if (level && size > 0) sizes.set(`L${level} ${bytes(size)}`, size);
  }
  return [...sizes].sort((a, b) => a[1] - b[1]).map(([text, size]) => ({ x: Math.log2(size), text }));
}

// The bandwidth at which a loaded latency was measured.
function bandwidthFor(m, matrices) {
  const name = m.name.replace("latency", "bandwidth");
  return m.cols.name === "load" && m.quantity === "latency" ? matrices.find((b) => b.name === name && b.quantity === "bandwidth") : undefined;
}

// Place, text and range of the measured axis.
function measuredAxis(m, by) {
  const seen = by.cells.flat().map((c) => c.median).filter((v) => v !== null);
  const scale = by.unit === "MB/s" ? 1000 : 1;
  const lo = Math.min(...seen) / scale, hi = Math.max(...seen) / scale, slack = (hi - lo) * 0.05 || hi * 0.1 || 1;
  return {
    place: (i, j) => by.cells[i][j].median === null ? NaN : by.cells[i][j].median / scale,
    range: [Math.max(0, lo - slack), hi + slack], ticks: roundTicks, title: `bandwidth in ${scale === 1000 ? "GB/s" : by.unit}`,
  };
}

// The same of an axis of the matrix: its values are the ticks, as far as there is room.
export function valueAxis(axis) {
  const spaced = axis.values.length > 2 && axis.values.every((v) => v >= 0) && axis.values.at(-1) >= 16 * Math.max(axis.values[0], 1);
  const log = axis.name === "working_set" || axis.name === "message" || spaced;
  const places = axis.labels ? axis.values.map((_, i) => i) : axis.values.map((v) => log ? Math.log2(Math.max(v, SMALLEST_X)) : v);
  const texts = labels(axis), lo = Math.min(...places), hi = Math.max(...places), slack = (hi - lo) * 0.03 || 1;
  return {
    place: (i, j) => places[j], range: [lo - slack, hi + slack], title: words(axis.name) + (log ? ", logarithmic" : ""),
    choices: places.map((at, i) => [at, texts[i]]),
    ticks: (from, to, count) => {
      const inside = places.map((at, i) => [at, texts[i]]).filter(([at]) => at >= from && at <= to);
      const apart = (to - from) / Math.max(1, count);
      let last = -Infinity;
      return inside.filter(([at]) => { const take = at >= last + apart * 0.999; if (take) last = at; return take; });
    },
  };
}

// The lines of a matrix: {lines, x, of, byNode, isCurve}. `ranks`: where each ran, for names and colours.
export function linesOf(m, ranks, matrices) {
  const form = formOf(m), turned = Boolean(form && form[2]);
  const series = turned ? m.cols : m.rows, axis = turned ? m.rows : m.cols;
  const at = (s, i) => turned ? m.cells[i][s] : m.cells[s][i];
  const by = bandwidthFor(m, matrices);
  const x = by ? measuredAxis(m, by) : valueAxis(axis);
  const nodeOf = new Map((ranks || []).filter((r) => r.mem_node >= 0).map((r) => [r.rank, r.mem_node]));
  const isRank = series.name === "rank", nodes = [...new Set(isRank ? series.values.map((r) => nodeOf.get(r)) : [])];
  const byNode = nodes.length > 1 && nodes.length <= COLOURS && !nodes.includes(undefined);
  const names = labels(series), places = labels(axis);
  const lines = series.values.map((value, s) => {
    const node = isRank ? nodeOf.get(value) : undefined;
    const own = series.name === "target" && value === -1;
    return {
      key: `${series.name} ${names[s]}`, name: own ? "own memory" : `${series.name} ${names[s]}${node === undefined ? "" : `, node ${node}`}`,
      series: byNode ? nodes.indexOf(node) : s % COLOURS, dashed: byNode && series.values.slice(0, s).filter((r) => nodeOf.get(r) === node).length % 2 === 1,
      points: axis.values.map((_, i) => ({ c: at(s, i), i })).filter(({ c }) => c && c.median !== null).map(({ c, i }) => ({
        x: x.place(turned ? i : s, turned ? s : i), y: c.median, lo: c.lo ?? NaN, hi: c.hi ?? NaN, hollow: disturbed(c),
        at: `${words(axis.name)} ${places[i]}`, more: cellText(c) })).filter((p) => Number.isFinite(p.x)),
    };
  });
  return { lines, x, of: series.name, byNode, isCurve: form !== undefined };
}

// Where each rank stands for the node of its CPU, and the columns are nodes of memory, the axes say so.
function asNodes(m, ranks) {
  const nodeOf = new Map((ranks || []).map((r) => [r.rank, r.cpu_node])), nodes = m.rows.values.map((r) => nodeOf.get(r));
  if (m.rows.name !== "rank" || m.cols.name !== "target" || !nodes.every((n) => n >= 0) || new Set(nodes).size < nodes.length) return m;
  return { ...m, rows: { ...m.rows, name: "node of the CPU", values: nodes, labels: nodes.map(String) }, cols: { ...m.cols, name: "node of the memory" } };
}

// Fills root with the picture of one matrix of a run. run: the run's document, `document`: all of its
// matrices and ranks (GET /v1/runs/{id}/matrix.json). Returns a function that stops it.
export async function drawCurve(root, matrix, run, document = { matrices: [matrix] }) {
  const figure = make("figure", { class: "chart" });
  root.append(figure);
  const title = `${words(matrix.quantity)} in ${matrix.unit}, ${matrix.rows.name} by ${words(matrix.cols.name)}`;
  figure.append(make("figcaption", {}, make("b", {}, matrix.name), ` ${title}`));
  let stop = () => {};
  if (!formOf(matrix)) drawHeat(figure, { ...asNodes(matrix, document.ranks), disturbed });
  else if (!matrix.cells.flat().some((c) => c && c.median !== null)) figure.append(make("p", {}, "No value was measured."));
  else {
    const { lines, x, of, byNode } = linesOf(matrix, document.ranks, document.matrices), hollow = lines.some((l) => l.points.some((p) => p.hollow));
    const notes = [byNode && "Colours are the nodes of the memory.", hollow && "Hollow: disturbed, many samples were left out.",
      lines.some((l) => l.points.some((p) => Number.isFinite(p.lo))) && "Bands are the 95 % intervals of the medians."].filter(Boolean);
    const marks = matrix.cols.name === "working_set" ? await cacheMarks(run) : [];
    stop = await drawLines(figure, { lines, of, x, title, unit: matrix.unit, yTitle: `${words(matrix.quantity)} in ${matrix.unit}`, marks, notes: notes.length ? [notes.join(" ")] : [] });
  }
  figure.append(numbers(matrix));
  return stop;
}
