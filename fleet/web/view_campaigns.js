// SPDX-License-Identifier: Apache-2.0
// Campaigns: the same run on many nodes, a few at a time. A new one is planned first, and begins when
// its plan has been seen.
import { clearWrong, make, markWrong, table, wrongPlace } from "./dom.js";
import { get, send } from "./daemon.js";
import { age, figures, when } from "./format.js";
import { count, whole } from "./names.js";

export const title = "Campaigns";

const LISTED = 50;
const AGAIN_MS = 5000; // while one is running

export const stateOf = (c) => make("span", { class: `state ${c.state}` }, c.state);
export const minutes = (n) => `${figures(n)} node-minutes`;

function list(campaigns) {
  const columns = [{ text: "Campaign", kind: "text" }, { text: "State", kind: "text" }, "Nodes", "Done", "Failed", "Skipped", "Left", "Cost", { text: "Submitted (UTC)", kind: "text" }, { text: "Why", kind: "text wide" }];
  return campaigns.length ? table("Campaigns, the newest first", columns, campaigns.map((c) => [make("a", { href: `#/campaigns/${c.id}` }, c.name), stateOf(c), whole(c.nodes), whole(c.done), whole(c.failed), whole(c.skipped),
    whole(c.pending + c.running), minutes(c.spent_node_minutes), when(c.created), c.why])) : make("p", {}, "No campaign yet.");
}

// --- A new one -----------------------------------------------------------------------------------

// Member of the request, label, attributes, help. What is empty is not sent, so that the collector's
// default holds. With `options` ([value, text]) it is a choice.
const FIELDS = [
  ["name", "Name", { required: true, maxlength: 63 }, "No other campaign that has not ended may have it."],
  ["nodes", "Nodes", { placeholder: "all" }, "A set: n[1-100]. Empty: all nodes."],
  ["spec.benchmark", "Benchmark", { required: true, value: "latency" }, "As the nodes know it: latency, bandwidth."],
  ["spec.size", "Working sets, MiB", { placeholder: "default" }, "As for a run of a node: 1-64."],
  ["at_once", "At once", { type: "number", min: 1, max: 256, placeholder: "16" }, "Maximum number of probes at the same time."],
  ["at_once_each.by", "Limit also per", { options: [["", "no further limit"], ["rack", "rack"], ["class", "class"], ["prefix", "prefix of names"]] }, "A rack is a group of groups_file. A prefix is a name before its last number."],
  ["at_once_each.n", "At once in each", { type: "number", min: 1, max: 256, disabled: true }, "Maximum number of probes in one rack, class or prefix."],
  ["budget_node_minutes", "Budget, node-minutes", { type: "number", min: 0, step: "any", placeholder: "none" }, "Maximum cost of a round."],
  ["window", "Window", { placeholder: "any time" }, "Local time in which probes begin: Mon-Fri 20:00-06:00."],
  ["each", "Repeat each", { placeholder: "once" }, "A round begins so long after the one before: 7d."],
  ["retry_for", "Retry for", { placeholder: "24h" }, "A busy node is tried again so long: 12h. Then it is skipped."],
  ["order", "Order", { options: [["", "stalest first"], ["name", "by name"]] }, "The node whose newest run is oldest is first."],
  ["stop_after.failed_percent", "Stop after failed, %", { type: "number", min: 0, max: 100, placeholder: "20" }, "More failed probes than this stop the campaign."],
  ["through", "Started by", { options: [["", "the daemons of the nodes"], ["slurm", "jobs of Slurm"]] }, "Jobs wait for their turn in Slurm. A script submits them."],
];

function requestOf(form) {
  const request = { spec: {} };
  for (const [member] of FIELDS) {
    const input = form.elements[member], value = input.value.trim(), path = member.split("."), last = path.pop();
    if (value && !input.disabled) path.reduce((within, name) => within[name] ||= {}, request)[last] = input.type === "number" ? Number(value) : value;
  }
  return request;
}

const idOf = (member) => `new-${member.split(".").pop()}`;

function control(member, { options, ...attributes }) {
  const id = idOf(member), about = { id, name: member, "aria-describedby": `${id}-help`, ...attributes };
  return options ? make("select", about, options.map(([value, text]) => make("option", { value }, text))) : make("input", { autocomplete: "off", ...about });
}

const field = ([member, label, attributes, help]) => make("div", { class: "field" }, make("label", { for: idOf(member) }, label), control(member, attributes),
  make("p", { class: "help quiet", id: `${idOf(member)}-help` }, help), wrongPlace(idOf(member)));

// The field of a member, or the first one within it.
function fieldOf(form, member) {
  const found = member && FIELDS.find(([name]) => name === member || name.startsWith(`${member}.`));
  return found && form.elements[found[0]];
}

function describePlan(plan) {
  return `It would probe ${count(plan.probed, "node")} (${plan.nodes}) from ${when(plan.begins)} to about ${when(plan.ends)} UTC, for ${minutes(plan.cost_node_minutes)}.` +
    (plan.left_out ? ` The budget has no room for ${count(plan.left_out, "node")}.` : "") + (plan.guessed ? ` The time is a guess for ${count(plan.guessed, "node")} without such a run.` : "");
}

function creation() {
  const status = make("p", { role: "status", id: "plan" }), start = make("button", { type: "button", id: "begin", class: "main", hidden: true }, "Start the campaign");
  let planned = null;
  const fail = (error) => {
    start.hidden = true;
    if (error.document && markWrong(fieldOf(form, error.document.member), error.document.detail)) return;
    status.textContent = error.message;
    status.setAttribute("role", "alert");
  };
  const plan = (event) => {
    event.preventDefault();
    planned = requestOf(form);
    clearWrong(form);
    status.setAttribute("role", "status");
    status.textContent = "";
    start.hidden = true;
    send("v1/fleet/campaigns", { ...planned, dry_run: true }).then(({ plan: found }) => {
      status.textContent = describePlan(found);
      start.hidden = false;
    }, fail);
  };
  // The number is required if racks, classes or prefixes are limited, and means nothing otherwise.
  const limit = () => {
    const { value } = form.elements["at_once_each.by"], n = form.elements["at_once_each.n"];
    n.disabled = !value;
    n.required = !!value;
  };
  const form = make("form", { id: "new", "aria-label": "New campaign", onsubmit: plan, onchange: limit, oninput: () => { start.hidden = true; } }, FIELDS.map(field),
    make("button", { type: "submit", class: "plain" }, "Plan it"));
  start.onclick = () => send("v1/fleet/campaigns", planned).then(({ campaign }) => { location.hash = `#/campaigns/${campaign.id}`; }, fail);
  return make("section", { class: "card" }, make("h2", {}, "New campaign"), form, status, start);
}

export async function show(root) {
  const body = make("div"), card = make("section", { class: "card", id: "campaigns" }, make("h2", {}, "Campaigns"), body);
  let timer = 0, seen = "", stopped = false;

  async function fill() {
    const { campaigns } = await get(`v1/fleet/campaigns?limit=${LISTED}`), now = JSON.stringify(campaigns);
    if (stopped || now === seen || body.contains(document.activeElement)) return;
    body.replaceChildren(list(campaigns));
    seen = now;
  }

  async function again() {
    await fill().catch(() => {}); // the frame says that it is lost
    if (!stopped) timer = setTimeout(again, AGAIN_MS);
  }

  await fill();
  timer = setTimeout(again, AGAIN_MS);
  root.append(card, creation());
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
