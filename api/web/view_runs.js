// SPDX-License-Identifier: Apache-2.0
// The list of runs: filters, pages, and runs that other clients start. The filters are in the
// address, so that a list can be sent as a link.
import { make, table } from "./dom.js";
import { get, once } from "./daemon.js";
import { list, STATES } from "./runs.js";

export const title = "Runs";

const PAGES = [25, 50, 100, 200]; // runs per page
const AGAIN_MS = 3000;            // an unchanged list costs the daemon a hash (ETag)

const option = (value, text) => make("option", { value }, text);
const field = (text, control) => make("label", {}, text, control);

function emptyText(filter, node) {
  if (["benchmark", "state", "label"].some((name) => filter.get(name))) return "No run fits these filters.";
  if (filter.get("node") === "*") return "No runs yet.";
  return filter.get("node") ? `No runs of ${filter.get("node")}.` : `No runs of ${node} yet. Imported runs are under all nodes.`;
}

// The query of a request for what the filter has; without a node, this one.
function request(filter, node) {
  const query = new URLSearchParams(filter);
  if (query.get("node") === "*") query.delete("node");
  else if (!query.get("node")) query.set("node", node);
  if (!query.get("limit")) query.set("limit", PAGES[0]);
  return "v1/runs?" + query;
}

function form(filter, node, benchmarks, changed) {
  const controls = {
    node: make("select", { id: "runs-of", name: "node" }, option("", `this node (${node})`), option("*", "all nodes")),
    benchmark: make("select", { name: "benchmark" }, option("", "all"), benchmarks.map((b) => option(b.name, b.name))),
    state: make("select", { name: "state" }, option("", "all"), STATES.map((s) => option(s, s))),
    label: make("input", { name: "label", autocomplete: "off", list: "labels" }),
    limit: make("select", { name: "limit" }, PAGES.map((n) => option(n, n))),
  };
  const wanted = filter.get("node");
  if (wanted && wanted !== "*" && wanted !== node) controls.node.append(option(wanted, wanted));
  for (const [name, control] of Object.entries(controls)) control.value = filter.get(name) || (name === "limit" ? PAGES[0] : "");
  const element = make("form", { class: "filters", "aria-label": "Filters", onchange: changed, onsubmit: (event) => { event.preventDefault(); changed(event); } },
    field("Node", controls.node), field("Benchmark", controls.benchmark), field("State", controls.state),
    field("Label", controls.label), field("Runs per page", controls.limit), make("datalist", { id: "labels" }));
  return { element, controls };
}

// Nodes and labels of a list become choices.
function offer({ element, controls }, runs, node) {
  const known = new Set([...controls.node.options].map((o) => o.value).concat(node));
  for (const name of new Set(runs.map((run) => run.node))) if (!known.has(name)) controls.node.append(option(name, name));
  const labels = new Set(runs.map((run) => run.label).filter(Boolean));
  element.querySelector("datalist").replaceChildren(...[...labels].map((label) => option(label, label)));
}

// The address of a list. Leaves the view's own address as it is where nothing changed.
const address = (filter) => "#/runs" + (String(filter) ? "?" + filter : "");

// Boxes before the runs: two of them lead to their comparison. What is chosen stays chosen on other
// pages of the list.
function chooser(place) {
  const chosen = [];
  const fill = () => place.replaceChildren(chosen.length === 2
    ? make("a", { id: "compare", href: `#/compare/${Math.min(...chosen)}/${Math.max(...chosen)}` }, `Compare run ${Math.min(...chosen)} with run ${Math.max(...chosen)}`)
    : chosen.length ? `Run ${chosen[0]} is chosen. Choose another one to compare them.` : "");
  return (run) => run.state !== "succeeded" ? "" : make("input", { type: "checkbox", "aria-label": `Choose run ${run.id}`, "data-run": run.id, checked: chosen.includes(run.id),
    onchange: ({ target }) => {
      if (target.checked) chosen.push(run.id);
      else chosen.splice(chosen.indexOf(run.id), 1);
      const left = chosen.length > 2 && document.querySelector(`[data-run="${chosen.shift()}"]`);
      if (left) left.checked = false;
      fill();
    } });
}

export async function show(root, { query, leads }) {
  const { node } = await once("v1/node"), { benchmarks } = await once("v1/benchmarks");
  const body = make("div", { id: "runs" }), pages = make("p", { class: "links", id: "pages" });
  const pair = make("p", { role: "status", id: "pair" }), choose = leads("#/compare/1/2") ? chooser(pair) : null;
  const news = make("p", { role: "status", class: "quiet", id: "news" });
  let filter = new URLSearchParams(query), shown = "", newest = 0, timer = 0, requests = 0;

  function fill(text) {
    const { runs, next } = JSON.parse(text);
    const focus = body.contains(document.activeElement) && document.activeElement.getAttribute("href");
    const { heads, rows } = list(runs, filter.get("node"));
    if (choose) {
      heads.push({ text: "Choose", kind: "text" });
      for (const [i, row] of rows.entries()) row.push(choose(runs[i]));
    }
    offer(filters, runs, node);
    body.replaceChildren(runs.length ? table("Runs, newest first", heads, rows) : make("p", { class: "quiet" }, emptyText(filter, node)));
    const older = new URLSearchParams(filter), first = new URLSearchParams(filter);
    older.set("cursor", next);
    first.delete("cursor");
    pages.replaceChildren(...[filter.get("cursor") && make("a", { href: address(first) }, "Newest runs"),
      next && make("a", { id: "older", href: address(older) }, "Older runs")].filter(Boolean));
    if (focus) (body.querySelector(`a[href="${focus}"]`) || body).focus();
  }

  // `quiet`: by the clock, so a daemon that is gone is not an error of this view.
  async function load(quiet) {
    const mine = ++requests;
    clearTimeout(timer);
    try {
      const page = await get(request(filter, node));
      if (mine !== requests) return;
      const text = JSON.stringify(page), top = page.runs.length && page.runs[0].id;
      if (quiet && top > newest && !filter.get("cursor")) news.textContent = `Run ${top} is new.`;
      newest = Math.max(newest, top);
      if (text !== shown) fill(text);
      shown = text;
    } catch (error) {
      if (mine !== requests) return;
      if (!quiet) body.replaceChildren(make("p", { role: "alert" }, error.message));
    }
    timer = setTimeout(again, AGAIN_MS);
  }

  function again() {
    if (document.hidden) timer = setTimeout(again, AGAIN_MS);
    else load(true);
  }

  function changed() {
    filter = new URLSearchParams();
    for (const [name, control] of Object.entries(filters.controls)) if (control.value.trim()) filter.set(name, control.value.trim());
    if (filter.get("limit") === String(PAGES[0])) filter.delete("limit");
    history.replaceState(null, "", address(filter));
    newest = 0;
    shown = "";
    load(false);
  }

  const filters = form(filter, node, benchmarks, changed);
  root.append(make("section", { class: "card" }, filters.element, news, pair, body, pages));
  await load(false);
  return () => { requests++; clearTimeout(timer); };
}
