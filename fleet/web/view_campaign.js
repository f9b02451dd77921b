// SPDX-License-Identifier: Apache-2.0
// One campaign: how far it is, its nodes, and its end.
import { make, table } from "./dom.js";
import { follow, get, send } from "./daemon.js";
import { when } from "./format.js";
import { whole } from "./names.js";
import { minutes, stateOf } from "./view_campaigns.js";

export const title = ({ id }) => `Campaign ${id}`;

const NODES = 200;     // of a page of the list
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
  // What can have the focus stays: only what has none is made anew.
  const about = make("div"), list = make("div"), status = make("p", { role: "status" }), heading = make("h2", { tabindex: "-1" }, "Nodes");
  const cancel = make("button", { type: "button", id: "cancel", onclick: () => send(`v1/fleet/campaigns/${id}/cancel`, {}).then(() => again(), (error) => {
    status.textContent = error.message;
    status.setAttribute("role", "alert");
  }) }, "Cancel it and its runs");
  const script = make("a", { id: "script", href: `v1/fleet/campaigns/${id}/script`, "data-name": `campaign-${id}.sh`, onclick: follow }, "Script that submits it");
  const links = make("p", { class: "links" }, make("a", { href: "#/campaigns" }, "All campaigns"));
  const card = make("section", { class: "card", id: "campaign", tabindex: "-1" }, about, cancel, status, links);
  const back = make("button", { type: "button", id: "back", hidden: true, onclick: () => turn(-1) }, "Nodes before"), more = make("button", { type: "button", id: "more", hidden: true, onclick: () => turn(1) }, "More nodes");
  const nodes = make("section", { class: "card", id: "probes" }, heading, list, make("p", { class: "links" }, back, more));
  const cursors = [""]; // of each page that was turned to
  let page = 0, timer = 0, seen = "", listed = "", over = false, stopped = false;

  function describe(campaign) {
    const left = ended(campaign) && document.activeElement === cancel;
    cancel.hidden = ended(campaign);
    if (left) card.focus();
    about.replaceChildren(...progress(campaign));
    if (!toSubmit(campaign)) script.remove();
    else if (!script.parentNode) links.append(script);
  }

  function write({ campaign, node_states: states, cursor }) {
    const before = page * NODES;
    list.replaceChildren(before || cursor ? make("p", { class: "quiet" }, `Nodes ${whole(before + 1)} to ${whole(before + states.length)} of ${whole(campaign.nodes)}, by name.`) : "",
      table("Nodes of this round", [{ text: "Node", kind: "text" }, { text: "State", kind: "text" }, { text: "Requested (UTC)", kind: "text" }, "Time", { text: "Why", kind: "text wide" }],
        states.map((n) => [link(n.node), n.state, when(n.requested), n.seconds === null ? "" : `${n.seconds.toFixed(1)} s`, n.why])));
    back.hidden = !page;
    more.hidden = !cursor;
    if (cursor) cursors[page + 1] = cursor;
  }

  async function fill() {
    const wanted = page, found = await get(`v1/fleet/campaigns/${id}?` + new URLSearchParams([["limit", NODES], ...(page ? [["cursor", cursors[page]]] : [])])).catch((error) => {
      if (page && error.status === 422) page = 0; // a new round has other nodes
      throw error;
    }), now = JSON.stringify([page, found]), { campaign } = found;
    if (stopped || wanted !== page) return;
    retitle(`Campaign ${campaign.name}: ${campaign.state}`);
    if (now !== seen) describe(campaign);
    seen = now;
    if (now !== listed && !list.contains(document.activeElement)) {
      write(found);
      listed = now;
    }
    over = ended(campaign) && !campaign.running && listed === now;
  }

  async function again() {
    await fill().catch(() => {}); // the frame says that it is lost
    clearTimeout(timer);
    if (!stopped && !over) timer = setTimeout(again, AGAIN_MS);
  }

  // A reader is at the beginning of the page then.
  async function turn(by) {
    page += by;
    over = false;
    heading.focus();
    await again();
  }

  await fill();
  root.append(card, nodes);
  if (!over) timer = setTimeout(again, AGAIN_MS);
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
