// SPDX-License-Identifier: Apache-2.0
// One campaign: how far it is, its nodes, and its end.
import { make, table } from "./dom.js";
import { follow, get, send } from "./daemon.js";
import { when } from "./format.js";
import { count, whole } from "./names.js";
import { minutes, stateOf } from "./view_campaigns.js";

export const title = ({ id }) => `Campaign ${id}`;

const NODES = 200;     // that are listed; others have a link of their own
const AGAIN_MS = 3000; // while it has not ended

// Slurm starts the runs, and they were not submitted yet.
const toSubmit = (c) => c.request.through === "slurm" && c.state === "waiting";
const ended = (c) => ["done", "cancelled", "stopped"].includes(c.state);
const link = (name) => make("a", { href: `#/nodes/${name}` }, name);

function progress(c) {
  const over = c.done + c.failed + c.skipped;
  const facts = [["State", stateOf(c)], ["Round", String(c.round)], ["Done", `${whole(c.done)} of ${whole(c.nodes)}`], ["Running", whole(c.running)], ["Left", whole(c.pending)], ["Failed", whole(c.failed)], ["Skipped", whole(c.skipped)],
    ["Cost", minutes(c.spent_node_minutes)], ["Submitted (UTC)", when(c.created)], ["By", c.by]];
  return [make("dl", { class: "facts" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    make("progress", { max: Math.max(1, c.nodes), value: over, "aria-label": "Nodes that are finished" }), c.why && make("p", {}, `${c.why}${c.until ? `, until ${when(c.until)} UTC` : ""}.`)].filter(Boolean);
}

export async function show(root, { id, retitle }) {
  const card = make("section", { class: "card", id: "campaign" }), nodes = make("section", { class: "card", id: "probes" }), status = make("p", { role: "status" });
  const cancel = make("button", { type: "button", id: "cancel", onclick: () => send(`v1/fleet/campaigns/${id}/cancel`, {}).then(() => again(), (error) => {
    status.textContent = error.message;
    status.setAttribute("role", "alert");
  }) }, "Cancel it and its runs");
  let timer = 0, seen = "", listed = "", over = false, stopped = false;

  async function fill() {
    const found = await get(`v1/fleet/campaigns/${id}?limit=${NODES}`), now = JSON.stringify(found), { campaign } = found;
    if (stopped) return;
    retitle(`Campaign ${campaign.name}: ${campaign.state}`);
    cancel.hidden = ended(campaign);
    if (now !== seen) {
      card.replaceChildren(...progress(campaign), cancel, status, make("p", { class: "links" }, make("a", { href: "#/campaigns" }, "All campaigns"),
        toSubmit(campaign) && make("a", { id: "script", href: `v1/fleet/campaigns/${id}/script`, "data-name": `campaign-${id}.sh`, onclick: follow }, "Script that submits it")));
    }
    seen = now;
    if (now !== listed && !nodes.contains(document.activeElement)) {
      nodes.replaceChildren(make("h2", {}, "Nodes"), found.cursor ? make("p", { class: "quiet" }, `The first ${count(found.node_states.length, "node")}.`) : "",
        table("Nodes of this round", [{ text: "Node", kind: "text" }, { text: "State", kind: "text" }, { text: "Requested (UTC)", kind: "text" }, "Time", { text: "Why", kind: "text wide" }],
          found.node_states.map((n) => [link(n.node), n.state, when(n.requested), n.seconds === null ? "" : `${n.seconds.toFixed(1)} s`, n.why])));
      listed = now;
    }
    over = ended(campaign) && !campaign.running && listed === now;
  }

  async function again() {
    await fill().catch(() => {}); // the frame says that it is lost
    clearTimeout(timer);
    if (!stopped && !over) timer = setTimeout(again, AGAIN_MS);
  }

  await fill();
  root.append(card, nodes);
  if (!over) timer = setTimeout(again, AGAIN_MS);
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
