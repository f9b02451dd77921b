// SPDX-License-Identifier: Apache-2.0
// The first view: is this node fine? The verdict is the largest thing, the evidence is below it.
import { make, svg, table } from "./dom.js";
import { get, once, send } from "./daemon.js";
import { age, figures, percent, when } from "./format.js";
import { link, list, open } from "./runs.js";
import { foremost, turn, turnText, verdict } from "./verdict.js";

export const title = "Overview";

const POINTS = 200;      // of a metric, in its small picture
const BASELINES = 16;    // that are checked
const AGAIN_MS = 10000;  // until it is looked whether a run came or ended
const WIDTH = 240, HEIGHT = 44;

// --- The verdict -------------------------------------------------------------------------------

function banner(tone, headline, ...content) {
  return make("section", { class: "banner " + tone, "aria-labelledby": "verdict" }, make("h2", { id: "verdict" }, headline), content);
}

function availability(now) {
  if (now.busy) return "A run is being measured now.";
  if (now.available) return "A run would start now.";
  return "A run would not start now: " + now.blockers.map((b) => b.text).join("; ") + ".";
}

const blocks = () => get("v1/availability").then(availability, (error) => `Whether a run would start is not known: ${error.message}`)
  .then((text) => make("p", { id: "blocks" }, text));

// Without a baseline nothing can be judged: the newest run can become one.
function without(newest, again) {
  const problem = make("p", { role: "alert" });
  const use = async () => {
    problem.textContent = "";
    await send("v1/baselines/default", { runs: [newest.id] }, "PUT").then(again, (error) => { problem.textContent = error.message; });
  };
  if (!newest) return banner("none", "No runs yet", make("p", {}, "The first run takes a few seconds."),
    make("p", { class: "actions" }, make("a", { class: "button", href: "#/start" }, "Start a run")));
  return banner("none", "No baseline to judge by", make("p", {}, "A baseline is a run, or the median of several, that later runs are compared with. ",
    `The newest run, run ${newest.id} (${newest.benchmark}), was measured ${when(newest.measured)} UTC, ${age((Date.now() - Date.parse(newest.measured)) / 1000)} ago.`),
  make("p", { class: "actions" }, make("button", { type: "button", class: "main", id: "use-baseline", onclick: use }, `Use run ${newest.id} as the baseline`), " ",
    link(newest.id, `Open run ${newest.id}`)), problem);
}

function judged(check, since) {
  const { tone, headline, sentences } = verdict(check, since);
  const measured = check.run && make("p", { id: "age" }, `Last run: ${age(check.age_s)} ago (`, link(check.run), ").");
  return banner(tone, headline, sentences.map((text) => make("p", {}, text)), measured);
}

// --- The key numbers ---------------------------------------------------------------------------

// The metric that sums up a run, {name, unit, value}, or null: the first of its layout.
function key(run, layouts) {
  const names = run && layouts[run.layout];
  return names ? { name: names[0][0], unit: names[0][1], value: run.values[0] } : null;
}

const scale = (values) => {
  const low = Math.min(...values), high = Math.max(...values);
  return (v) => high > low ? HEIGHT - 4 - (v - low) / (high - low) * (HEIGHT - 8) : HEIGHT / 2;
};

// The course of a metric, with a mark at each change.
function spark(history) {
  const { points } = history;
  if (points.length < 2) return null;
  const y = scale(points.map((p) => p.value)), x = (i) => i / (points.length - 1) * (WIDTH - 4) + 2;
  const line = points.map((p, i) => `${x(i).toFixed(1)},${y(p.value).toFixed(1)}`).join(" ");
  const marks = (history.change_points || []).map((c) => {
    const i = points.findIndex((p) => p.run === c.run);
    return svg("circle", { class: "mark", cx: x(i), cy: y(points[i].value), r: 4 }, svg("title", {}, `${percent(c.percent)} at ${when(c.at)} (run ${c.run})`));
  });
  return svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${points.length} values of ${history.metric}` },
    svg("polyline", { points: line }), marks);
}

function tile(run, metric, history, leads) {
  const past = `#/history/${metric.name}`;
  const turned = (history.change_points || []).at(-1);
  return make("li", { class: "tile" }, make("h3", {}, run.benchmark),
    make("p", { class: "value" }, make("b", {}, figures(metric.value)), " " + metric.unit), spark(history),
    turned && make("p", {}, turnText(turned)),
    make("p", { class: "quiet" }, history.help + "."), make("p", { class: "links" }, link(run.id),
      leads(past) && make("a", { href: past }, "History"), make("span", { class: "quiet" }, when(run.measured))));
}

const historyOf = (run, metric, node) => get(`v1/history?limit=${POINTS}&metric=${encodeURIComponent(metric.name)}` +
  `&node=${encodeURIComponent(node)}&variant=${encodeURIComponent(run.variant)}`);

// --- The view ----------------------------------------------------------------------------------

function checksTable(checks) {
  return make("section", { class: "card" }, make("h2", {}, "All baselines"), table("Each baseline and the newest run like it",
    [{ text: "Baseline", kind: "text" }, { text: "State", kind: "text" }, { text: "Verdict", kind: "text" }, "Difference", "Run"],
    checks.map((c) => [c.baseline, make("span", { class: "state " + c.state }, c.state), c.verdict, c.overall ? percent(c.overall.percent) : "–",
      c.run ? link(c.run, String(c.run)) : "–"])));
}

const newestRuns = async (node) => (await get("v1/runs?limit=5&node=" + encodeURIComponent(node))).runs;
const states = (runs) => runs.map((run) => `${run.id} ${run.state}`).join(", ");

function newest(root, runs) {
  const { heads, rows } = list(runs, "");
  const now = runs.find(open);
  root.replaceChildren(make("section", { class: "card" }, make("h2", {}, "Newest runs"),
    now && make("p", {}, link(now.id), ` is ${now.state}.`),
    runs.length ? table("Newest runs of this node", heads, rows) : make("p", {}, "No runs of this node yet."),
    make("p", {}, make("a", { href: "#/runs" }, "All runs"))));
}

async function checkAll() {
  const { baselines } = await get("v1/baselines");
  const shown = baselines.slice(0, BASELINES);
  return Promise.all(shown.map((b) => get("v1/check?baseline=" + encodeURIComponent(b.name))));
}

// The run that was checked, in its slim form.
async function checked(check) {
  if (!check || !check.run) return { runs: [], layouts: [] };
  return get(`v1/runs?form=summary&limit=1&cursor=b${check.run + 1}`);
}

// [{run, metric, history}] of the checked run first, then of the newest run of each benchmark. A
// history that cannot be had is left out.
function numbers(pages, node) {
  const found = new Map();
  for (const { runs, layouts } of pages)
    for (const run of [...runs].sort((a, b) => b.id - a.id)) {
      const metric = run.imported ? null : key(run, layouts);
      if (metric && !found.has(run.id)) found.set(run.id, { run, metric, history: historyOf(run, metric, node).catch(() => null) });
    }
  return [...found.values()];
}

// Fills root. Returns the states of the newest runs, which are read first: a run that ends meanwhile
// differs from them, so all is drawn again. A reader keeps the place. It is looked at when it is about
// to go, because the daemon may take long to respond.
async function draw(root, node, leads) {
  const runs = await newestRuns(node);
  const summary = get(`v1/runs?form=summary&state=succeeded&per_benchmark=1&node=${encodeURIComponent(node)}`);
  summary.catch(() => {}); // it is awaited below
  const checks = await checkAll(), check = foremost(checks);
  const pages = await Promise.all([checked(check), summary]);
  const all = numbers(pages, node), own = all.find(({ run }) => check && run.id === check.run);
  const top = check ? judged(check, own ? turn(await own.history) : null) : without(all.length ? all[0].run : null, () => draw(root, node, leads));
  const tiles = make("ul", { class: "tiles" }), below = make("div");
  top.append(await blocks());
  const focus = root.contains(document.activeElement) && document.activeElement.getAttribute("href");
  root.replaceChildren(top, tiles, below);
  for (const { run, metric, history } of all) if (await history) tiles.append(tile(run, metric, await history, leads));
  if (checks.length > 1) root.append(checksTable(checks));
  newest(below, runs);
  if (focus && document.activeElement === document.body) (root.querySelector(`a[href="${focus}"]`) || root.querySelector("a, button")).focus();
  return states(runs);
}

export async function show(root, { leads }) {
  const { node } = await once("v1/node");
  let shown = await draw(root, node, leads), timer = 0, left = false;
  const look = async () => {
    if (document.hidden) return;
    if (states(await newestRuns(node)) !== shown) shown = await draw(root, node, leads);
    else root.querySelector("#blocks").replaceWith(await blocks());
  };
  // One after the other. Without a daemon what is here stays: the frame says so.
  const again = async () => {
    await look().catch(() => {});
    if (!left) timer = setTimeout(again, AGAIN_MS);
  };
  timer = setTimeout(again, AGAIN_MS);
  return () => {
    left = true;
    clearTimeout(timer);
  };
}
