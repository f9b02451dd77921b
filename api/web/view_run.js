// SPDX-License-Identifier: Apache-2.0
// One run: its progress while it is measured, then its pictures with the report beside them, its
// numbers, and what one can do with it.
import { drawCurve } from "./chart_curve.js";
import { make } from "./dom.js";
import { call, follow, get, once, send, stream } from "./daemon.js";
import { short, took, when, words } from "./format.js";
import { report } from "./report.js";
import { condition, imported, open, state } from "./runs.js";

export const title = ({ id }) => `Run ${id}`;

const AGAIN_MS = 2000; // after a stream broke

// --- About the run -----------------------------------------------------------------------------

const DOCUMENTS = [["JSON", "matrix.json"], ["CSV", "matrix.csv"], ["Report", "report.md"], ["Log", "log"]];
const documents = (run) => make("p", { class: "links" }, DOCUMENTS.filter(([, path]) => path === "log" || run.state === "succeeded").map(([text, path]) =>
  make("a", { href: `v1/runs/${run.id}/${path}`, "data-name": `run-${run.id}-${path}`, onclick: follow }, text)));

function facts(run) {
  const { spec } = run;
  const pairs = [["State", state(run)], ["Benchmark", spec.benchmark], ["Node", run.node], ["Measured (UTC)", when(run.measured || run.created)],
    ["Time", run.seconds === null ? "" : took(run.seconds)], ["Sizes", spec.size], ["Ranks", run.ranks && `${run.ranks} (${short(spec.cpus || spec.ranks || "")})`],
    ["Memory", spec.targets || spec.numa], ["Method", run.method], ["Note", spec.note],
    ["Unreadable", (run.unreadable || []).map((u) => `${u.member}: ${u.text}`).join("; ")]];
  return make("dl", { class: "facts" }, pairs.filter(([, value]) => value).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

// What may have affected the numbers, on one line until it is unfolded.
function conditions(run) {
  const list = run.conditions, loud = list.filter((c) => c.severity === "warning" || c.severity === "error");
  if (!list.length) return null;
  const text = `${list.length} ${list.length === 1 ? "condition" : "conditions"}` + (loud.length ? `, ${loud.length} of them may have affected the numbers` : "");
  return make("details", { class: "conditions" }, make("summary", {}, text), make("ul", {}, list.map((c) => make("li", { class: c.severity }, condition(c)))));
}

// A button and what it says when it was used. `act` returns the text.
function action(text, act, ...controls) {
  const done = make("span", { role: "status", class: "quiet" }), problem = make("span", { role: "alert" });
  const go = async (event) => {
    event.preventDefault();
    done.textContent = problem.textContent = "";
    await act().then((said) => { done.textContent = said; }, (error) => { problem.textContent = error.message; });
  };
  return make("form", { class: "action", onsubmit: go }, controls, make("button", { type: "submit", class: "plain" }, text), done, problem);
}

function actions(run) {
  const label = make("input", { id: "label", maxlength: "63", autocomplete: "off", value: run.label || "" });
  const name = make("input", { id: "baseline", autocomplete: "off", value: "default", pattern: "[A-Za-z0-9._\\-]{1,63}", required: true });
  const relabel = () => send(`v1/runs/${run.id}/label`, { label: label.value.trim() }, "PUT").then((now) => now.label ? `Label: ${now.label}` : "No label.");
  const use = () => send(`v1/baselines/${encodeURIComponent(name.value.trim())}`, { runs: [run.id] }, "PUT").then((b) => `Run ${run.id} is baseline ${b.name}.`);
  return make("div", { class: "actions" }, action("Save", relabel, make("label", {}, "Label", label)),
    run.state === "succeeded" && action("Use as baseline", use, make("label", {}, "Baseline", name)));
}

// --- While it is measured ----------------------------------------------------------------------

function progress(run) {
  const p = run.progress, share = p && p.total > 0 ? p.done / p.total : null;
  const left = p && p.eta_ms > 0 ? `, about ${Math.ceil(p.eta_ms / 1000)} s left` : "";
  const text = p && p.phase === "control pairs" ? `Control pairs: ${p.done} %. They show how many pairs can be measured at a time.`
    : p ? `${p.phase}: ${p.done} of ${p.total} cells${left}` : run.state === "queued" ? "Waiting for its turn." : "Starting.";
  return [make("p", { class: "large" }, text), run.waiting && make("p", {}, `${run.waiting.text}${run.waiting.until ? `, until ${when(run.waiting.until)}` : ""}`),
    make("progress", { max: "1", value: share, "aria-label": "progress of the run" })].filter(Boolean);
}

export async function show(root, { id, retitle }) {
  const left = new AbortController(), { signal } = left, stops = [];
  const { node } = await once("v1/node");
  const live = make("div", { id: "live" }), body = make("div", { id: "run" });
  root.append(live, body);

  function head(run) {
    const other = run.node !== node || imported(run) ? ` of ${run.node}${imported(run) ? ", imported" : ""}` : "";
    retitle(`Run ${id}${other}: ${run.state}`);
    body.replaceChildren(make("section", { class: "card" }, facts(run), run.error && make("p", { role: "alert" }, run.error.text),
      conditions(run), !open(run) && actions(run), !open(run) && documents(run)));
  }

  async function results(run) {
    const document = await get(`v1/runs/${id}/matrix.json`, { signal });
    const pictures = make("div", { class: "pictures" }), aside = make("section", { class: "card report", "aria-label": "Report" });
    body.append(make("div", { class: "sides" }, pictures, aside));
    for (const m of document.matrices) {
      const card = make("section", { class: "card", "aria-label": words(m.name) });
      pictures.append(card);
      stops.push(await drawCurve(card, m, run, document));
      card.append(make("p", { class: "links" }, make("a", { href: `#/runs/${id}/distribution?matrix=${encodeURIComponent(m.name)}` },
        "Distribution of the samples")));
      if (signal.aborted) stops.pop()();
    }
    const text = await call(`v1/runs/${id}/report.md`, { signal }).then((r) => r.text(), (error) => error.message);
    aside.append(make("h2", {}, "Report"), ...report(text));
  }

  async function log() {
    const text = await call(`v1/runs/${id}/log`, { signal }).then((r) => r.text(), (error) => error.message);
    body.append(make("section", { class: "card" }, make("h2", {}, "Log"), make("pre", { tabindex: "0" }, text || "The processes printed nothing.")));
  }

  async function fill(run) {
    head(run);
    if (run.state === "succeeded") await results(run);
    else if (!open(run)) await log();
  }

  const status = make("div", { role: "status" }), cancelling = action("Cancel the run", () => call(`v1/runs/${id}/cancel`, { method: "POST" }).then(() => "It is being cancelled."));

  // Until the run has finished, or the view is left. A stream that breaks is requested again.
  async function watch(run) {
    live.replaceChildren(make("section", { class: "card" }, status, cancelling));
    status.replaceChildren(...progress(run));
    while (!signal.aborted) {
      try {
        for await (const { data } of stream(`v1/runs/${id}/events`, signal)) {
          const changed = data.state !== run.state;
          run = data;
          if (!open(run)) break; // its end is shown at once: no progress, no button to cancel, and the title
          if (changed) head(run);
          status.replaceChildren(...progress(run));
        }
        run = await get(`v1/runs/${id}`, { signal });
        if (!open(run)) {
          live.replaceChildren();
          return await fill(run);
        }
      } catch (error) {
        if (signal.aborted) return undefined;
        if (error.status) throw error; // 0: the daemon is away
      }
      await new Promise((again) => setTimeout(again, AGAIN_MS));
    }
    return undefined;
  }

  const run = await get(`v1/runs/${id}`);
  if (open(run)) {
    head(run);
    watch(run).catch((error) => live.append(make("p", { role: "alert" }, error.message)));
  } else await fill(run);
  return () => {
    left.abort();
    for (const stop of stops) stop();
  };
}
