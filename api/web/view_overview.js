// SPDX-License-Identifier: Apache-2.0
// The first view: the newest runs of this node.
import { make, table } from "./dom.js";
import { get, once } from "./daemon.js";
import { list } from "./runs.js";

export const title = "Overview";

export async function show(root) {
  const { node } = await once("v1/node");
  const { runs } = await get("v1/runs?limit=5&node=" + encodeURIComponent(node));
  const { heads, rows } = list(runs, "");
  root.append(make("section", { class: "card" }, make("h2", {}, "Newest runs"),
    runs.length ? table("Newest runs of this node", heads, rows)
      : make("p", {}, "No runs of this node yet. ", make("a", { href: "#/start" }, "Start a run"))));
}
