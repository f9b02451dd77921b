// SPDX-License-Identifier: Apache-2.0
// The form that starts a run.
import { make } from "./dom.js";
import { once, send } from "./daemon.js";

export const title = "Start a run";

const choices = (id, values) => make("datalist", { id }, values.map((value) => make("option", { value })));
const options = (values) => values.map((value) => make("option", {}, value));

export async function show(root) {
  const { benchmarks } = await once("v1/benchmarks");
  const error = make("p", { role: "alert", id: "start-error" });

  async function start(event) {
    event.preventDefault();
    error.textContent = "";
    const spec = Object.fromEntries([...new FormData(event.target)].filter(([, value]) => value !== ""));
    if (spec.benchmark !== "latency") delete spec.size, delete spec.mode;
    try {
      const run = await send("v1/runs", spec);
      location.hash = `#/runs/${run.id}`;
    } catch (problem) {
      error.textContent = problem.message;
    }
  }

  root.append(make("section", { class: "card" }, make("form", { id: "start", onsubmit: start },
    make("label", {}, "Benchmark ", make("select", { name: "benchmark" }, benchmarks.map((b) => make("option", { title: b.title }, b.name)))),
    make("label", {}, "Sizes ", make("input", { name: "size", value: "1-64", autocomplete: "off", "aria-describedby": "start-help" })),
    make("label", {}, "Ranks ", make("input", { name: "ranks", placeholder: "default", list: "ranks-list", autocomplete: "off" })),
    choices("ranks-list", ["all-cores", "one-per-numa", "one-per-l3"]),
    make("label", {}, "Memory ", make("input", { name: "numa", value: "local", list: "numa-list", autocomplete: "off" })),
    choices("numa-list", ["local", "auto"]),
    make("label", {}, "Mode ", make("select", { name: "mode" }, options(["concurrent", "serial", "both"]))),
    make("button", { type: "submit" }, "Start")),
  make("p", { id: "start-help", class: "quiet" }, "Sizes are in MiB, or written as 32K, 4M, 1G. 1-64 means 1, 2, 4 … 64. Sizes and mode apply to latency only. A run keeps its cores busy."),
  error));
}
