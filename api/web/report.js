// SPDX-License-Identifier: Apache-2.0
// The report of a run (GET /v1/runs/{id}/report.md) as elements: headings, lists and paragraphs are
// the Markdown that it uses.
import { make } from "./dom.js";

const plain = (text) => text.replace(/\\([^\w\s])/g, "$1");

// Elements, without the report's own title.
export function report(markdown) {
  const parts = [];
  for (const line of markdown.split("\n")) {
    const [, indent, mark, text] = /^( *)(#+ |- |\| ?)?(.*)$/.exec(line);
    if (!text.trim() || mark === "# ") continue;
    const list = parts.at(-1);
    if (indent && mark === "- " && list && list.localName === "ul") {
      const item = list.lastElementChild;
      if (!item.querySelector("ul")) item.append(make("ul"));
      item.lastElementChild.append(make("li", {}, plain(text)));
      continue;
    }
    const kind = mark === "- " ? "ul" : mark && mark.startsWith("|") ? "pre" : mark ? "h3" : "p";
    if (kind === "ul" || kind === "pre") {
      if (!parts.length || parts.at(-1).localName !== kind) parts.push(make(kind));
      parts.at(-1).append(kind === "ul" ? make("li", {}, plain(text)) : line + "\n");
    } else parts.push(make(kind, {}, plain(text)));
  }
  return parts;
}
