// SPDX-License-Identifier: Apache-2.0
// Elements. Text from the daemon becomes text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// An attribute that is true has no value. One that is false, null or undefined is left out. A
// function is the listener of its event: onclick, onchange. Children are elements or texts, and
// arrays of them; null, undefined and false are left out.
export function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// Other children, as make() takes them: the browser's own replaceChildren() writes "null" and "false".
export function refill(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

// The name of a metric, which may break behind its dots and underscores: children for make().
export const breakable = (name) => name.split(/(?<=[._])/).flatMap((part, i) => i ? [make("wbr"), part] : part);

// Where a field of a form says what is wrong with it: behind the input with this id.
export const wrongPlace = (id) => make("p", { class: "wrong", id: id + "-wrong", role: "alert" });

// False: the input has no such place.
export function markWrong(input, text) {
  const place = input && document.getElementById(`${input.id}-wrong`);
  if (!place) return false;
  const folded = input.closest("details");
  if (folded) folded.open = true;
  input.setAttribute("aria-invalid", "true");
  place.textContent = text;
  return true;
}

export function clearWrong(form) {
  for (const place of form.querySelectorAll(".wrong")) place.textContent = "";
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

// The same as make() for an element of a picture. No style attribute: the page's policy forbids it.
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// A picture of the daemon as an element of this page, so that its titles show. Only SVG is read. Its
// rules of style hold for itself alone. They are taken out first, because the page's policy allows
// none in a document. No text of a run can look like them: its "<" is escaped.
export function picture(text) {
  const sheets = [];
  const bare = text.replace(/<style>([^<]*)<\/style>/g, (all, rules) => {
    sheets.push(new CSSStyleSheet());
    sheets.at(-1).replaceSync(rules + "svg{display:block;max-width:100%;height:auto}");
    return "";
  });
  const root = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
  if (root.namespaceURI !== SVG || root.localName !== "svg") throw new Error("The daemon's picture cannot be read");
  const host = make("div", { class: "picture" });
  const shadow = host.attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = sheets;
  shadow.append(document.adoptNode(root));
  return host;
}

const cell = (tag, attributes, content) => make(tag, attributes, content instanceof Node ? content : String(content ?? ""));

// A table that scrolls by itself where it is too wide. A head is a text, or {text, kind} with kind
// "text" (left), "number" (right, the default) or "cut" (a long text, cut). A row is an array of
// texts and elements. Its first one heads the row.
export function table(caption, heads, rows) {
  const columns = heads.map((head) => typeof head === "string" ? { text: head } : head);
  const kind = (i) => columns[i] && columns[i].kind || "number";
  const body = rows.map((row) => make("tr", {}, row.map((content, i) =>
    cell(i ? "td" : "th", i ? { class: kind(i) } : { class: kind(i), scope: "row" }, content))));
  return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, make("table", {},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, columns.map((c, i) => cell(c.text ? "th" : "td", { class: kind(i), scope: c.text ? "col" : null }, c.text)))),
    make("tbody", {}, body)));
}
