// SPDX-License-Identifier: Apache-2.0
// The views of a fleet's page, and what they are called. The frame is web/frame.js.
import { get } from "./daemon.js";
import { count } from "./names.js";
import { start } from "./frame.js";

start({
  routes: [
    ["", "fleet", "Fleet"],
    ["findings", "findings", "Findings"],
    ["nodes/{name}", "node"],
    ["classes/{hash}", "class"],
    ["rollouts", "rollouts", "Rollouts"],
    ["campaigns", "campaigns", "Campaigns"],
    ["campaigns/{id}", "campaign"],
  ],
  holes: { hash: /^[0-9a-f]{4,64}$/, id: /^[1-9]\d{0,14}$/, name: /^[\w.][\w.-]{0,62}$/ },
  about: () => get("v1/fleet/status").then(({ nodes }) => ["fleet", count(nodes, "node")]),
});
