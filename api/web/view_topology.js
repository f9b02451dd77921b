// SPDX-License-Identifier: Apache-2.0
// The node's NUMA nodes.
import { make, table } from "./dom.js";
import { once } from "./daemon.js";
import { bytes, ranges } from "./format.js";

export const title = "Topology";

export async function show(root) {
  const topology = await once("v1/topology");
  const known = topology.nodes.some((n) => n.distances && n.distances.length);
  const heads = ["Node", { text: "CPUs", kind: "text" }, "Memory", { text: "Kind", kind: "text" },
    ...(known ? topology.nodes.map((n) => "to " + n.node) : [])];
  root.append(make("section", { class: "card" }, table("Memory and distance (10 is local) of each NUMA node", heads,
    topology.nodes.map((n) => [n.node, ranges(n.cpus), bytes(n.memory_bytes), n.kind, ...(known ? n.distances : [])]))));
}
