// SPDX-License-Identifier: Apache-2.0
// How the samples of a run are distributed: of one cell, or of a row or column together. What is
// chosen stands in the address, so that it can be sent.
import { make, picture, table } from "./dom.js";
import { call, get } from "./daemon.js";
import { bytes, words } from "./format.js";

export const title = ({ id }) => `Run ${id}: distribution`;

// Values of an axis: what the daemon reads, and its name for people.
const values = (axis) => axis.values.map((v, i) => axis.labels ? [axis.labels[i], axis.labels[i]]
  : [String(v), axis.unit === "bytes" ? bytes(v) : String(v)]);

function choice(name, text, options, chosen, change) {
  const select = make("select", { id: `choose-${name}`, name, onchange: change },
    options.map(([value, label]) => make("option", { value, selected: value === chosen }, label)));
  return make("label", {}, text, " ", select);
}

function numbers(d) {
  const rows = d.bins.map((b) => [b.lower.toPrecision(5), b.upper.toPrecision(5), b.count, `${(100 * b.cumulative).toFixed(1)} %`]);
  return table(`${d.title}: bins in ${d.unit}`, ["from", "to", "samples", "share up to here"], rows);
}

export async function show(root, { id, query, retitle }) {
  const { matrices } = await get(`v1/runs/${id}/matrix.json`);
  if (!matrices.length) return root.append(make("p", {}, "This run has no numbers."));
  const chosen = { matrix: query.get("matrix"), row: query.get("row"), col: query.get("col") };
  const m = matrices.find(({ name }) => name === chosen.matrix) || matrices[0];
  const rows = [["all", `every ${words(m.rows.name)}`], ...values(m.rows)];
  const cols = [...values(m.cols), ["all", `every ${words(m.cols.name)}`]];
  const known = (options, value, otherwise) => options.some(([v]) => v === value) ? value : otherwise;
  const place = { matrix: m.name, row: known(rows, chosen.row, "all"), col: known(cols, chosen.col, cols.at(-2)[0]) };
  const form = make("form", { class: "choose" });
  const change = () => { location.hash = `#/runs/${id}/distribution?${new URLSearchParams(new FormData(form))}`; };
  form.append(
    matrices.length > 1 ? choice("matrix", "Matrix", matrices.map(({ name }) => [name, words(name)]), place.matrix, change) : "",
    choice("row", words(m.rows.name), rows, place.row, change),
    choice("col", words(m.cols.name), cols, place.col, change));
  const body = make("div", { id: "distribution" });
  root.append(make("section", { class: "card" }, form, body),
    make("p", {}, make("a", { href: `#/runs/${id}` }, `Run ${id}`)));
  const which = new URLSearchParams(place);
  try {
    const d = await get(`v1/runs/${id}/distribution?${which}`);
    retitle(`Run ${id}: ${d.title}`);
    const drawn = picture(await (await call(`v1/runs/${id}/distribution.svg?${which}`)).text());
    body.append(make("figure", {}, drawn, make("details", {}, make("summary", {}, "Numbers"), numbers(d))));
  } catch (error) {
    if (error.status !== 404) throw error;
    body.append(make("p", {}, error.document.detail));
  }
  return undefined;
}
