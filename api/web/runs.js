// SPDX-License-Identifier: Apache-2.0
// What several views say about a run.
import { make } from "./dom.js";
import { short, took, when } from "./format.js";

export const STATES = ["queued", "running", "succeeded", "failed", "canceled", "interrupted"];

export const imported = (run) => run.source === "imported";
export const open = (run) => run.state === "queued" || run.state === "running";
export const link = (id, text) => make("a", { href: `#/runs/${id}` }, text || `Run ${id}`);

// A long text is cut. A tooltip shows all of it.
export const cut = (text) => make("span", { class: "cut", title: text }, text);

const seconds = (run) => run.seconds === null ? "" : took(run.seconds);
export const state = (run) => make("span", { class: "state " + run.state }, run.state + (imported(run) ? ", imported" : ""));

// The columns of a list of runs: heading, content for a run, and whether it is shown. `of` is the
// node whose runs are listed, "*" for all nodes.
const columns = [
  ["Run", (run) => link(run.id, String(run.id))],
  ["Node", (run) => run.node, (runs, of) => of === "*"],
  ["State", state],
  ["When (UTC)", (run) => when(run.measured || run.created)],
  ["Benchmark", (run) => run.spec.benchmark],
  ["Sizes", (run) => cut(run.spec.size || "")],
  ["Ranks", (run) => cut(short(run.spec.cpus || run.spec.ranks || ""))],
  ["Memory", (run) => cut(run.spec.targets || run.spec.numa || "")],
  ["Time", seconds],
  ["Label", (run) => cut(run.label || ""), (runs) => runs.some((run) => run.label)],
];

// {heads, rows} for table().
export function list(runs, of) {
  const shown = columns.filter(([, , there]) => !there || there(runs, of));
  return { heads: shown.map(([text]) => ({ text, kind: text === "Time" ? "number" : "text" })),
    rows: runs.map((run) => shown.map(([, content]) => content(run))) };
}

export function condition({ severity, rank, text }) {
  const loud = severity === "warning" || severity === "error" ? `${severity}: ` : "";
  return loud + (rank === null ? "" : `rank ${rank}: `) + text;
}
