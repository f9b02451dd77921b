// SPDX-License-Identifier: Apache-2.0
// The frame of a page: which view an address shows, the title, the focus, the token, and a lost
// daemon. The page of a node and that of a fleet both use it.
//
// A view is a file view_NAME.js with
//   export const title        a text, or a function of the parameters
//   export async function show(root, parameters)
//                             fills root; what it returns, if anything, stops its timers and streams
// Its parameters: those of its address, query (URLSearchParams of what follows "?"), retitle(text)
// for a title that is known later only, and leads(address): whether there is a view at an address.
import { make } from "./dom.js";
import { events, get, useToken } from "./daemon.js";

const $ = (id) => document.getElementById(id);

let routes = [], holes = {}, about = null; // what start() was given

// The parameters of an address that fits a pattern, or null.
function match(pattern, path) {
  const wanted = pattern.split("/"), given = path.split("/");
  const parameters = {};
  if (wanted.length !== given.length) return null;
  for (const [i, part] of wanted.entries()) {
    const name = /^\{(\w+)\}$/.exec(part);
    if (!name ? part !== given[i] : !holes[name[1]].test(given[i])) return null;
    if (name) parameters[name[1]] = given[i];
  }
  return parameters;
}

function find(address) {
  const [path, query] = address.replace(/^#?\/?/, "").split("?");
  for (const [pattern, view] of routes) {
    const parameters = match(pattern, path);
    if (parameters) return { view, path, parameters: { ...parameters, query: new URLSearchParams(query) } };
  }
  return null;
}

let shown = 0;      // counts views: a view that was left while it loaded shows nothing
let stop = null;    // of the view that is shown
let failed = false; // it could not be shown

function retitle(text) {
  const node = $("node-name").textContent;
  $("title").textContent = text;
  document.title = [text, node, "numaprobe"].filter(Boolean).join(" · ");
}

function markNavigation(path) {
  for (const link of $("nav").querySelectorAll("a")) {
    const here = link.dataset.path === path.split("/")[0];
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

async function fill(root, found, mine, ready) {
  const view = await import(`./view_${found.view}.js`);
  if (mine !== shown) return;
  const title = typeof view.title === "function" ? view.title(found.parameters) : view.title;
  retitle(title);
  ready();
  const stopped = await view.show(root, { ...found.parameters, leads: (address) => find(address) !== null,
    retitle: (text) => mine === shown && retitle(text) });
  if (mine === shown) stop = stopped || null;
  else if (stopped) stopped();
}

// `focus`: a reader moved here, so the heading gets the focus. The first view leaves it alone.
async function show(focus) {
  const mine = ++shown, found = find(location.hash);
  if (stop) stop();
  stop = null;
  failed = false;
  const heading = make("h1", { id: "title", tabindex: "-1" }), root = make("div", { "aria-busy": "true" });
  $("view").replaceChildren(heading, root);
  markNavigation(found ? found.path : "none");
  try {
    // At once, not when all is there: a reader who has moved on meanwhile keeps the place.
    if (found) await fill(root, found, mine, () => focus && heading.focus());
    else {
      retitle("There is no such view");
      root.append(make("p", {}, make("a", { href: "#/" }, routes[0][2])));
    }
  } catch (error) {
    if (mine !== shown) return;
    failed = true;
    root.append(make("p", { role: "alert" }, error.message));
  }
  if (mine !== shown) return;
  root.removeAttribute("aria-busy");
  root.dataset.shown = mine;
  if (focus && (failed || !found)) heading.focus();
}

async function showAbout() {
  const [name, detail] = await about();
  $("node-name").textContent = name;
  $("node-cpu").textContent = detail;
  if ($("title")) retitle($("title").textContent);
}

// --- The token ---------------------------------------------------------------------------------

events.addEventListener("denied", ({ detail }) => {
  $("token-form").hidden = false;
  $("token-form").dataset.changes = detail.changes;
  $("token-text").textContent = detail.text;
  if (detail.changes) $("token").focus();
});

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const again = $("token-form").dataset.changes !== "true" || failed;
  $("token-form").hidden = true;
  useToken($("token").value);
  $("token").value = "";
  showAbout().catch(() => {});
  if (again) show(true);
});

// --- The daemon's absence ----------------------------------------------------------------------

let again = 0;
events.addEventListener("lost", () => {
  $("lost").hidden = false;
  clearTimeout(again);
  again = setTimeout(() => get("healthz").then(() => failed && show(false), () => {}), 2000);
});
events.addEventListener("found", () => { $("lost").hidden = true; });

// --- The beginning -----------------------------------------------------------------------------

// page.routes: [address after "#/", view, name in the navigation]. An address without a name belongs
// to the row of the navigation that its first word names. page.holes: what fits the {holes} of
// addresses. page.about(): [name, detail] of what the page is about, for its head.
export function start(page) {
  ({ routes, holes, about } = page);
  for (const [path, , name] of routes)
    if (name) $("nav").append(make("li", {}, make("a", { href: "#/" + path, "data-path": path }, name)));
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("view").focus();
  });
  window.addEventListener("hashchange", () => show(true));
  showAbout().catch(() => {});
  show(false);
}
