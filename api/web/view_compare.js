// SPDX-License-Identifier: Apache-2.0
// Two runs beside each other: the daemon's verdict, both curves, the differences of the cells, and
// what differs between the machines. The page itself judges nothing.
import { make, table } from "./dom.js";
import { get, once } from "./daemon.js";
import { figures, percent, when, words } from "./format.js";
import { linesOf } from "./chart_curve.js";
import { drawHeat } from "./chart_heat.js";
import { drawLines } from "./lines.js";

export const title = ({ id, other }) => `Run ${id} and run ${other}`;

const PARTS_MAX = 20; // of the differences in a list
const VERDICTS = { same: ["good", "Same"], slower: ["bad", "Slower"], faster: ["good", "Faster"], inconclusive: ["none", "Inconclusive"] };

const runLink = (run, node) => [make("a", { href: `#/runs/${run.id}` }, `run ${run.id}`), ` (${run.spec.benchmark}, `, run.node === node ? "this node" : run.node,
  `, ${when(run.measured || run.created)} UTC${run.label ? `, ${run.label}` : ""})`];

function headline(c, id, other) {
  const [kind, word] = VERDICTS[c.verdict];
  return make("section", { class: `card verdict ${kind}` }, make("h2", {}, `Run ${other} compared with run ${id}: ${word.toLowerCase()}`), make("p", { class: "headline" }, c.text));
}

function refusal(error, id, other) {
  const anyway = error.document && error.status === 409 && !["mode", "target"].includes(error.document.member);
  return make("section", { class: "card verdict none" }, make("h2", {}, "No verdict"), make("p", { class: "headline" }, error.message),
    make("p", { class: "links" }, anyway && make("a", { href: `#/compare/${id}/${other}?allow_different=true` }, "Compare them anyway")));
}

const interval = (d) => d.lo_percent === null || d.lo_percent === undefined ? "" : `${percent(d.lo_percent)} to ${percent(d.hi_percent)}`;

function differences(c) {
  const m = c.comparison, row = (name, d) => [name, d.base_value === null ? "–" : figures(d.base_value), d.target_value === null ? "–" : figures(d.target_value), d.percent === null ? "–" : percent(d.percent), interval(d), d.verdict];
  const heads = ["", `before, ${c.unit}`, `after, ${c.unit}`, "difference", { text: "95 % interval", kind: "text" }, { text: "verdict", kind: "text" }];
  const groups = [...new Set(m.groups.map((g) => g.by))].filter((by) => by !== "overall");
  return make("section", { class: "card" }, make("h2", {}, "Differences"),
    c.matrices.length > 1 && table("Each matrix that both runs have", heads, c.matrices.map((x) => row(x.matrix, x))),
    m.parts.length > 0 && table("Parts that differ by themselves", heads, m.parts.slice(0, PARTS_MAX).map((p) => row(p.name, p))),
    (m.more_parts || m.parts.length > PARTS_MAX) && make("p", { class: "quiet note" }, "There are more such parts. GET /v1/compare lists them."),
    m.notes.map((text) => make("p", { class: "quiet note" }, text)),
    groups.map((by) => make("details", {}, make("summary", {}, `By ${words(by)}`), table(`${c.matrix}: difference by ${words(by)}`, heads, m.groups.filter((g) => g.by === by).map((g) => row(`${words(by)} ${g.label}`, g))))));
}

function facts(c, id, other) {
  if (!c.fact_changes) return make("section", { class: "card" }, make("h2", {}, "The machine"), make("p", {}, "What differs between the machines is not known: a run was imported without its facts."));
  return make("section", { class: "card" }, make("h2", {}, "The machine"), c.fact_changes.length ?
    table("Facts that differ, the most likely cause first", [{ text: "fact", kind: "text" }, { text: `run ${id}`, kind: "text" }, { text: `run ${other}`, kind: "text" }, { text: "kind", kind: "text" }],
      c.fact_changes.map((f) => [words(f.name), f.before ?? "not known", f.after ?? "not known", f.kind])) : make("p", {}, "No known fact differs."));
}

// The differences of the cells in per cent, as a matrix with the axes of the base.
function differenceMatrix(m, c) {
  const rowAt = new Map(m.rows.values.map((v, i) => [v, i])), colAt = new Map(m.cols.values.map((v, i) => [v, i]));
  const cells = m.rows.values.map(() => m.cols.values.map(() => null));
  // Axes of one name (rank by rank) have the second in a member of another name.
  const names = (cell) => Object.keys(cell).filter((k) => !["base_value", "target_value", "percent", "lo_percent", "hi_percent", "p", "verdict"].includes(k));
  for (const d of c.comparison.cells) {
    const [r, k] = names(d), i = rowAt.get(d[r]), j = colAt.get(d[k]);
    if (i === undefined || j === undefined || d.percent === null) continue;
    const worse = c.comparison.more_is_better ? -d.percent : d.percent;
    cells[i][j] = { median: worse, strong: d.verdict === "slower" || d.verdict === "faster", about: `${figures(d.base_value)} → ${figures(d.target_value)} ${c.unit}, ${d.verdict}` };
  }
  return { ...m, cells, diverging: true, quantity: c.comparison.more_is_better ? "loss" : "difference" };
}

async function curves(root, documents, ids, name) {
  const [a, b] = documents, first = (d) => d.matrices.find((m) => m.name === name) || d.matrices[0], m = first(a), n = first(b);
  if (!m || !n || m.rows.name !== n.rows.name || m.cols.name !== n.cols.name || m.unit !== n.unit) return null;
  const sides = [linesOf(m, a.ranks, a.matrices), linesOf(n, b.ranks, b.matrices)];
  if (!sides[0].isCurve) return null;
  const range = [Math.min(...sides.map((s) => s.x.range[0])), Math.max(...sides.map((s) => s.x.range[1]))];
  const longer = sides[0].x.choices && sides[0].x.choices.length < (sides[1].x.choices || []).length ? sides[1].x : sides[0].x;
  const lines = sides.flatMap((s, side) => s.lines.map((l) => ({ ...l, name: `${l.name}, run ${ids[side]}`, legend: l.name, side, sideName: `run ${ids[side]}`, series: side, dashed: side === 0 })));
  const figure = make("figure", { class: "chart" });
  root.append(make("section", { class: "card" }, make("h2", {}, `${m.name === n.name ? m.name : `${m.name} and ${n.name}`}: both runs`), figure));
  return drawLines(figure, { lines, of: sides[0].of, x: { ...longer, range }, title: `${words(m.quantity)} of run ${ids[0]} and run ${ids[1]}`, unit: m.unit,
    yTitle: `${words(m.quantity)} in ${m.unit}`, notes: [`Dashed: run ${ids[0]}. Solid: run ${ids[1]}.`] });
}

export async function show(root, { id, other, query }) {
  const request = new URLSearchParams({ base: id, target: other });
  for (const name of ["matrix", "threshold", "allow_different", "cycles"]) if (query.has(name)) request.set(name, query.get(name));
  const [own, base, target] = await Promise.all([once("v1/node"), get(`v1/runs/${id}`), get(`v1/runs/${other}`)]);
  const compared = await get(`v1/compare?${request}`).catch((error) => error);
  if (compared instanceof Error && !compared.document) throw compared;
  root.append(compared instanceof Error ? refusal(compared, id, other) : headline(compared, id, other),
    make("p", {}, "Before: ", runLink(base, own.node), ". After: ", runLink(target, own.node), ". ", make("a", { href: `#/compare/${other}/${id}` }, "Swap")));
  const documents = await Promise.all([base, target].map((r) => r.finished ? get(`v1/runs/${r.id}/matrix.json`).catch(() => null) : null));
  const stop = documents[0] && documents[1] ? await curves(root, documents, [id, other], compared.matrix) : null;
  if (compared instanceof Error) return stop;
  const m = documents[0] && documents[0].matrices.find((x) => x.name === compared.matrix);
  if (m && compared.comparison.cells.length) {
    const figure = make("figure", { class: "chart" });
    drawHeat(figure, differenceMatrix(m, compared));
    root.append(make("section", { class: "card" }, make("h2", {}, "Difference of each cell"), figure,
      make("p", { class: "quiet note" }, `Red: run ${other} is slower. Blue: it is faster. A border: the daemon's verdict on the cell is slower or faster.`)));
  }
  root.append(differences(compared), facts(compared, id, other));
  return stop;
}
