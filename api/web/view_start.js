// SPDX-License-Identifier: Apache-2.0
// The form that starts a run. Its fields are the parameters that the daemon lists for a benchmark.
// It shows what blocks a run while one types, and the plan on request.
import { clearWrong, make, markWrong, table, wrongPlace } from "./dom.js";
import { get, once, send } from "./daemon.js";
import { age, bytes, ranges } from "./format.js";

export const title = "Start a run";

const PAUSE_MS = 400; // after the last key, before the daemon is requested

// Where a text has usual values, they are offered.
const USUAL = { ranks: ["all-cores", "one-per-numa", "one-per-l3"], numa: ["local", "auto"], size: ["auto", "1-64", "1-512"], targets: ["all", "own"] };

// --- Fields ------------------------------------------------------------------------------------

function control(param, id) {
  const about = { id, name: param.name, "aria-describedby": id + "-help", "data-kind": param.kind };
  if (param.kind === "boolean") return make("input", { ...about, type: "checkbox", checked: param.default === "true" });
  if (param.kind === "choice") return make("select", about, param.choices.map((c) => make("option", { selected: c === param.default }, c)));
  const list = USUAL[param.name] ? id + "-list" : null;
  return make("input", { ...about, autocomplete: "off", list, placeholder: param.default, maxlength: param.max_length,
    inputmode: param.kind === "integer" ? "numeric" : null });
}

function field(param) {
  const id = "param-" + param.name, input = control(param, id);
  return make("div", { class: "field " + param.kind }, make("label", { for: id }, param.name.replace(/_s$/, "").replaceAll("_", " ") +
    (param.unit ? ` (${param.unit})` : param.kind === "bytes" ? " (bytes)" : "")), input,
  USUAL[param.name] && make("datalist", { id: id + "-list" }, USUAL[param.name].map((value) => make("option", { value }))),
  make("p", { class: "quiet help", id: id + "-help" }, param.help), wrongPlace(id));
}

// What is chosen often is shown: texts, choices and "quick". The rest is folded.
const often = (param) => param.kind === "text" || param.kind === "choice" || param.name === "quick";

function fields(benchmark, common) {
  const own = benchmark.params, rest = own.concat(common).filter((p) => !often(p));
  const group = (name, params) => params.length ? make("fieldset", {}, make("legend", {}, name), params.map(field)) : null;
  return [make("p", { class: "quiet" }, benchmark.help), group("What is measured", own.filter(often)), group("Where and how", common.filter(often)),
    make("details", {}, make("summary", {}, `${rest.length} more parameters`), group("Effort and limits", rest))];
}

// The parameters that differ from their defaults, with the types that the interface has.
function spec(form) {
  const found = { benchmark: form.elements.benchmark.value };
  for (const input of form.querySelectorAll("[data-kind]")) {
    const { kind } = input.dataset, value = kind === "boolean" ? input.checked : input.value.trim();
    const usual = kind === "boolean" ? input.defaultChecked : kind === "choice" ? [...input.options].find((o) => o.defaultSelected).value : "";
    if (value === usual) continue;
    found[input.name] = ["integer", "number", "bytes"].includes(kind) && Number.isFinite(Number(value)) ? Number(value) : value;
  }
  return found;
}

// --- What the daemon says ----------------------------------------------------------------------

const items = (list) => make("ul", {}, list.map((b) => make("li", {}, b.text)));

function refusal(problem) {
  const blockers = problem.document && problem.document.blockers;
  return blockers && blockers.length ? [make("p", {}, "This run would not start now:"), items(blockers)] : [make("p", {}, problem.message)];
}

function availability(now) {
  if (now.blockers.length) return [make("p", {}, "This run would not start now:"), items(now.blockers)];
  const before = now.queued + (now.busy ? 1 : 0);
  return [make("p", {}, before ? `This run would start after ${before} other${before > 1 ? "s" : ""}.` : "This run would start now."),
    now.warnings.length ? items(now.warnings) : null].filter(Boolean);
}

// What the budget lowered.
function fitted({ name, from, to }) {
  return name === "pairs_most" ? `The budget has room for ${to} of ${from} pairs`
    : `To fit the budget: ${name} ${from} → ${to}`;
}

function plan(dry) {
  const { ranks, bytes_per_rank: each, estimate_s: seconds, estimate_most_s: most, notes, shortened } = dry.plan;
  const { admitted, blockers, warnings } = dry.admission;
  const [time, longest] = [seconds, most].map((s) => s < 1 ? "less than a second" : age(s));
  const facts = [["Estimated time", time === longest ? time : `${time}, up to ${longest} if it finds something`], ["Ranks", `${ranks.length} on CPUs ${ranges(ranks.map((r) => r.cpu).sort((a, b) => a - b))}`],
    ["Memory", `${bytes(each * ranks.length)}, ${bytes(each)} per rank`], ["Started by", dry.plan.launcher]];
  return make("section", { class: "card", id: "plan", "aria-labelledby": "plan-head" }, make("h2", { id: "plan-head", tabindex: "-1" }, "Plan"),
    make("dl", { class: "facts" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    admitted ? null : [make("p", {}, "It would not start now:"), items(blockers)], warnings.length ? items(warnings) : null,
    make("ul", {}, [...shortened.map(fitted), ...notes].map((text) => make("li", {}, text))),
    make("details", {}, make("summary", {}, "Placement"), table("Where each rank runs", ["Rank", "CPU", "Node of the CPU", "Node of the memory"],
      ranks.map((r) => [r.rank, r.cpu, r.cpu_node, r.mem_node]))),
    make("h3", {}, "Command"), make("pre", { tabindex: "0" }, dry.command));
}

// --- The view ----------------------------------------------------------------------------------

export async function show(root, { query }) {
  const { benchmarks, common } = await once("v1/benchmarks");
  const now = make("div", { id: "now", role: "status" }), problem = make("div", { id: "start-error", role: "alert" }), below = make("div");
  const body = make("div", { id: "fields" });
  let timer = 0, left = false, requests = 0;

  // The field that a problem names, or the general place.
  function complain(error, general) {
    const member = error.document && error.document.member;
    if (!markWrong(member && form.elements[member], error.document && error.document.detail)) general.replaceChildren(...refusal(error));
  }

  function clear() {
    clearWrong(form);
    problem.replaceChildren();
  }

  async function check() {
    const mine = ++requests;
    try {
      const found = await get("v1/availability?" + new URLSearchParams(spec(form)));
      if (left || mine !== requests) return;
      clear();
      now.replaceChildren(...availability(found));
    } catch (error) {
      if (left || mine !== requests) return;
      clear();
      now.replaceChildren();
      complain(error, now);
    }
  }

  function later() {
    clearTimeout(timer);
    below.replaceChildren();
    timer = setTimeout(check, PAUSE_MS);
  }

  async function request(path, done) {
    clearTimeout(timer);
    requests++;
    clear();
    await send(path, spec(form)).then(done, (error) => complain(error, problem));
  }

  const dryRun = () => request("v1/runs?dry_run=true", (dry) => { below.replaceChildren(plan(dry)); below.querySelector("h2").focus(); });
  const start = (event) => {
    event.preventDefault();
    request("v1/runs", (run) => { location.hash = `#/runs/${run.id}`; });
  };
  function choose() {
    body.replaceChildren(...fields(benchmarks.find((b) => b.name === choice.value), common));
    later();
  }

  const choice = make("select", { id: "benchmark", name: "benchmark", onchange: choose }, benchmarks.map((b) => make("option", { value: b.name }, `${b.name}: ${b.title}`)));
  const form = make("form", { id: "start", class: "card", onsubmit: start, oninput: later }, make("div", { class: "field wide" }, make("label", { for: "benchmark" }, "Benchmark"), choice),
    body, problem, make("div", { class: "submit" }, make("button", { type: "submit" }, "Start"),
      make("button", { type: "button", id: "dry-run", onclick: dryRun }, "Show the plan"), now));
  root.append(form, below);
  if (benchmarks.some((b) => b.name === query.get("benchmark"))) choice.value = query.get("benchmark");
  choose();
  clearTimeout(timer);
  await check();
  return () => { left = true; clearTimeout(timer); };
}
