// SPDX-License-Identifier: Apache-2.0
// One run: its state, its progress while it is measured, its pictures and numbers.
import { make, picture, table } from "./dom.js";
import { call, follow, get, once, stream } from "./daemon.js";
import { bytes, words } from "./format.js";
import { condition, imported, open } from "./runs.js";

export const title = ({ id }) => `Run ${id}`;

// Values of an axis for people: names, sizes or numbers.
function labels(axis) {
  return axis.labels || axis.values.map((v) => axis.unit === "bytes" ? bytes(v) : `${v}${axis.unit === "%" ? " %" : ""}`);
}

function numbers(m) {
  const value = (cell) => !cell || cell.median === null ? "–" : cell.median.toFixed(2);
  const rows = labels(m.rows).map((name, i) => [`${m.rows.name} ${name}`, ...m.cols.values.map((_, j) => value(m.cells[i][j]))]);
  return table(`${m.name}: median ${words(m.quantity)} in ${m.unit}, ${m.rows.name} by ${words(m.cols.name)}`, ["", ...labels(m.cols)], rows);
}

// The picture is the one that the command line saves. The numbers are folded below it.
async function figure(id, m) {
  const text = await (await call(`v1/runs/${id}/matrix.svg?matrix=${encodeURIComponent(m.name)}`)).text();
  return make("figure", {}, picture(text), make("details", {}, make("summary", {}, "Numbers"), numbers(m)));
}

const documents = (id) => [["JSON", "matrix.json"], ["CSV", "matrix.csv"], ["Log", "log"]].map(([text, path]) =>
  make("a", { href: `v1/runs/${id}/${path}`, "data-name": `run-${id}-${path}`, onclick: follow }, text));

function progress(run) {
  const p = run.progress;
  const text = run.state + (p ? `, ${p.phase}, ${p.done} of ${p.total} cells` +
    (p.eta_ms > 0 ? `, about ${Math.ceil(p.eta_ms / 1000)} s left` : "") : "");
  return [make("p", {}, text), make("progress", { max: "1", value: p && p.total > 0 ? p.done / p.total : null, "aria-label": "progress of the run" })];
}

export async function show(root, { id, retitle }) {
  const left = new AbortController();
  const { node } = await once("v1/node");
  const live = make("div", { id: "live", role: "status" }), body = make("div", { id: "run" });
  root.append(make("section", { class: "card" }, live, body));

  async function fill(run) {
    const other = run.node !== node || imported(run) ? ` of ${run.node}${imported(run) ? ", imported" : ""}` : "";
    retitle(`Run ${id}${other}: ${run.state}`);
    const text = [run.error && run.error.text, ...run.conditions.map(condition)].filter(Boolean);
    body.replaceChildren(...text.map((line) => make("p", {}, line)));
    if (!run.finished) return;
    const { matrices } = await get(`v1/runs/${id}/matrix.json`);
    for (const m of matrices) body.append(await figure(id, m));
    body.append(make("p", { class: "links" }, documents(id)));
  }

  // Until the run has finished, or the view is left. A stream that breaks is requested again.
  async function watch() {
    for (;;) {
      try {
        for await (const { data } of stream(`v1/runs/${id}/events`, left.signal)) {
          live.replaceChildren(...progress(data));
          if (!open(data)) break;
        }
        const run = await get(`v1/runs/${id}`, { signal: left.signal });
        if (!open(run)) {
          live.replaceChildren();
          return await fill(run);
        }
      } catch (error) {
        if (left.signal.aborted) return undefined;
        if (error.status) throw error;
      }
      await new Promise((again) => setTimeout(again, 2000));
    }
  }

  const run = await get(`v1/runs/${id}`);
  await fill(run);
  if (open(run)) watch().catch((error) => live.replaceChildren(make("p", { role: "alert" }, error.message)));
  return () => left.abort();
}
