// SPDX-License-Identifier: Apache-2.0
// The worklist: what is wrong in the fleet, the newest first. The filters are in the address, so that
// a list can be sent as a link.
import { make } from "./dom.js";
import { get } from "./daemon.js";
import { address, item, states, kindTexts } from "./finding.js";
import { count } from "./names.js";

export const title = "Findings";

const FILTERS = ["state", "what", "node"];
const PAGE = 50; // findings that are requested at once

const option = (value, text) => make("option", { value }, text);

function form(filter) {
  const controls = {
    state: make("select", { name: "state" }, option("", "not closed"), states.map((s) => option(s, s))),
    what: make("select", { name: "what" }, option("", "all"), Object.entries(kindTexts).map(([name, text]) => option(name, `${name}: ${text}`))),
    node: make("input", { name: "node", autocomplete: "off", spellcheck: "false" }),
  };
  for (const [name, control] of Object.entries(controls)) control.value = filter.get(name) || "";
  const changed = (event) => {
    event.preventDefault();
    const wanted = new URLSearchParams(Object.entries(controls).map(([name, control]) => [name, control.value.trim()]).filter(([, value]) => value));
    location.hash = address(wanted);
  };
  return make("form", { class: "filters", "aria-label": "Filters", onchange: changed, onsubmit: changed }, make("label", {}, "State", controls.state), make("label", {}, "Kind", controls.what),
    make("label", {}, "Node", controls.node));
}

export async function show(root, { query }) {
  const filter = new URLSearchParams([...query].filter(([name, value]) => FILTERS.includes(name) && value));
  const list = make("ul", { id: "findings", class: "findings" }), status = make("p", { role: "status", class: "quiet" }), more = make("button", { type: "button", hidden: true }, "Show more");
  let cursor = null;

  async function load() {
    const page = await get("v1/fleet/findings?" + new URLSearchParams([...filter, ["limit", PAGE], ...(cursor === null ? [] : [["cursor", cursor]])]));
    const items = page.findings.map(item);
    list.append(...items);
    cursor = page.next;
    more.hidden = cursor === null;
    const n = list.childElementCount;
    status.textContent = n ? `${count(n, "finding")}${cursor === null ? "" : ", and there are more"}.` : String(filter) ? "No finding fits these filters." : "Nothing is wrong that is known.";
    return items;
  }

  more.onclick = () => load().then(([first]) => first && first.querySelector("h2").focus(), (error) => { status.textContent = error.message; });
  root.append(form(filter), status, list, more);
  await load();
}
