// SPDX-License-Identifier: Apache-2.0
// The list of runs.
import { make, table } from "./dom.js";
import { get, once } from "./daemon.js";
import { list } from "./runs.js";

export const title = "Runs";

function emptyText(of) {
  if (of === "*") return "No runs yet.";
  return of ? `No runs of ${of}.` : "No runs of this node yet. Imported runs are under all nodes.";
}

export async function show(root) {
  const { node } = await once("v1/node");
  const of = make("select", { id: "runs-of", onchange: () => fill().catch((error) => body.replaceChildren(make("p", { role: "alert" }, error.message))) },
    make("option", { value: "" }, `this node (${node})`), make("option", { value: "*" }, "all nodes"));
  const body = make("div", { id: "runs" });

  // Nodes in a list of all nodes become choices.
  function offer(runs) {
    const known = new Set([...of.options].map((o) => o.value).concat(node));
    for (const name of new Set(runs.map((run) => run.node)))
      if (!known.has(name)) of.append(make("option", { value: name }, name));
  }

  async function fill() {
    const { runs } = await get("v1/runs?limit=20" + (of.value === "*" ? "" : "&node=" + encodeURIComponent(of.value || node)));
    const { heads, rows } = list(runs, of.value);
    offer(runs);
    body.replaceChildren(runs.length ? table("Runs, newest first", heads, rows) : make("p", { class: "quiet" }, emptyText(of.value)));
  }

  root.append(make("section", { class: "card" }, make("p", {}, make("label", { class: "beside" }, "Runs of ", of)), body));
  await fill();
}
