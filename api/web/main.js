// SPDX-License-Identifier: Apache-2.0
// The views of a node's page, and what they are called. The frame is web/frame.js.
import { once } from "./daemon.js";
import { start } from "./frame.js";

start({
  routes: [
    ["", "overview", "Overview"],
    ["topology", "topology", "Topology"],
    ["runs", "runs", "Runs"],
    ["runs/{id}", "run"],
    ["runs/{id}/distribution", "distribution"],
    ["start", "start", "Start a run"],
    ["history", "history", "History"],
    ["history/{metric}", "history"],
    ["compare/{id}/{other}", "compare"],
  ],
  holes: { id: /^[1-9]\d{0,14}$/, other: /^[1-9]\d{0,14}$/, metric: /^[\w.-]+$/ },
  about: () => once("v1/node").then(({ node, cpu_model }) => [node, cpu_model]),
});
