// SPDX-License-Identifier: Apache-2.0
// The machine with measured values on it: the daemon's picture in the width of the page, and the
// same numbers as tables. The values are the newest, or of the runs that the address names:
// #/topology?measured=17,18.
import { make, picture, table } from "./dom.js";
import { call, get } from "./daemon.js";
import { bytes, figures, ranges, when } from "./format.js";

export const title = "Topology";

const LEAST = 320, MOST = 3840; // widths that the daemon draws

const named = (runs) => runs ? "measured=" + encodeURIComponent(runs) : "";

// Without values the machine alone, if no run is named.
async function load(runs) {
  try {
    return await get("v1/topology?" + named(runs || "last"));
  } catch (error) {
    if (runs || (error.status !== 404 && error.status !== 503)) throw error;
    return get("v1/topology");
  }
}

function value(quantity, v) {
  if (v === null || v === undefined) return "–";
  return quantity.unit === "MB/s" ? figures(v / 1000) : figures(v);
}

// CPUs of a node (row) to memory of a node (column), without the nodes that have no value.
function costs(topology, quantity) {
  const nodes = topology.nodes.map((n, i) => ({ ...n, i }));
  const rows = nodes.filter((n) => quantity.values[n.i].some((v) => v !== null));
  const cols = nodes.filter((n) => quantity.values.some((row) => row[n.i] !== null));
  const unit = quantity.unit === "MB/s" ? "GB/s" : quantity.unit;
  return table(`${quantity.title} (${unit}): CPUs of a node (row) to memory of a node (column)`,
    ["From", ...cols.map((n) => "to " + n.node)],
    rows.map((n) => [n.node, ...cols.map((m) => value(quantity, quantity.values[n.i][m.i]))]));
}

function nodes(topology) {
  const known = topology.nodes.some((n) => n.distances && n.distances.length);
  const heads = ["Node", { text: "CPUs", kind: "text" }, "Memory", { text: "Kind", kind: "text" },
    ...(known ? topology.nodes.map((n) => "to " + n.node) : [])];
  return table("Memory and distance (10 is local) of each NUMA node", heads,
    topology.nodes.map((n) => [n.node, ranges(n.cpus), n.memory_bytes ? bytes(n.memory_bytes) : "none", n.kind,
      ...(known ? n.distances : [])]));
}

function sources(measured) {
  return make("p", { class: "quiet" }, "Measured by ", measured.runs.flatMap((r, i) => [i ? ", " : "",
    make("a", { href: `#/runs/${r.run}` }, `run ${r.run}`), ` (${r.benchmark}, ${when(r.measured)} UTC)`]), ".");
}

async function draw(place, runs) {
  const width = Math.min(MOST, Math.max(LEAST, Math.floor(place.clientWidth)));
  if (place.dataset.width === String(width)) return;
  place.dataset.width = width;
  const text = await (await call(`v1/topology.svg?width=${width}&${named(runs)}`)).text();
  if (place.dataset.width === String(width)) place.replaceChildren(picture(text));
}

export async function show(root, { query }) {
  const runs = query.get("measured");
  const topology = await load(runs);
  const place = make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Picture of the machine" });
  const quantities = topology.measured ? topology.measured.quantities : [];
  const failed = (error) => place.replaceChildren(make("p", { class: "quiet" }, error.message));
  root.append(make("section", { class: "card" }, place,
    topology.measured ? sources(topology.measured)
      : make("p", { class: "quiet" }, "Nothing is measured between the nodes yet. ",
        make("a", { href: "#/start" }, "Start a run of matrix or bandwidth"), ".")));
  if (quantities.length)
    root.append(make("section", { class: "card" }, make("details", { open: topology.nodes.length <= 4 },
      make("summary", {}, "The numbers as tables"), quantities.map((q) => costs(topology, q)))));
  root.append(make("section", { class: "card" }, nodes(topology)));
  const resized = new ResizeObserver(() => draw(place, runs).catch(failed));
  resized.observe(place);
  await draw(place, runs).catch(failed);
  return () => resized.disconnect();
}
