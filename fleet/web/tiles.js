// SPDX-License-Identifier: Apache-2.0
// Every node as a tile. A group of nodes is one picture with a path per kind of tile, so that ten
// thousand nodes are some hundred elements. Kinds differ in colour and in shape.
import { make, svg } from "./dom.js";
import { percent } from "./format.js";
import { count, groups, whole } from "./names.js";

const CELL = 12, ACROSS = 10; // units of the picture; tiles of a row
const LARGE_MOST = 200;       // nodes whose tiles are large
const DEVIATES = 2, FAR = 4;  // per cent worse than the peers, of a node that is fine

// Corners of each shape inside a cell, in units.
const SQUARE = [[1, 1], [11, 1], [11, 11], [1, 11]], SMALL = [[4, 4], [8, 4], [8, 8], [4, 8]];
const DIAMOND = [[6, -1], [13, 6], [6, 13], [-1, 6]], TRIANGLE = [[6, 0], [12.5, 11.5], [-0.5, 11.5]];
const HOURGLASS = [[1, 0], [11, 0], [7.5, 6], [11, 12], [1, 12], [4.5, 6]];

// The kinds of tiles, the first that fits a node is taken: its class in style sheets, shape, name in
// the legend, and what a node of it is. `percent`: by which its worst metric is worse than its peers'.
export const kinds = [
  { name: "sure", shape: DIAMOND, text: "slow, sure", is: (n) => n.grade === 2 },
  { name: "suspect", shape: TRIANGLE, text: "slow, suspect", is: (n) => n.grade === 1 },
  { name: "group", shape: HOURGLASS, text: "in a slower group", is: (n) => n.grade === 3 },
  { name: "unjudged", shape: SMALL, text: "not judged", is: (n) => n.percent === null },
  { name: "far", shape: SQUARE, text: `fine, worst metric over ${FAR} % worse`, is: (n) => n.percent > FAR },
  { name: "deviates", shape: SQUARE, text: `${DEVIATES} to ${FAR} % worse`, is: (n) => n.percent > DEVIATES },
  { name: "fine", shape: SQUARE, text: `under ${DEVIATES} % worse`, is: () => true },
];
// Over the tile of a node that does not respond.
const absent = { name: "absent", text: "does not respond", is: (n) => n.state !== "up" && n.state !== "missed" };
const CROSS = "m0 0l12 12m0-12l-12 12";

export const kindOf = (node) => kinds.find((kind) => kind.is(node));

// What a node is, in words.
export function describe(node) {
  const by = node.percent === null ? "not judged" : node.grade ? `${kindOf(node).text}, ${percent(node.percent)} at ${node.metric}` :
    node.percent > 0 ? `fine, ${percent(node.percent)} at ${node.metric}` : "fine";
  return `${node.name}: ${node.state}, ${by}`;
}

const outline = (shape, x, y) => shape.map(([dx, dy], i) => `${i ? "L" : "M"}${x + dx} ${y + dy}`).join("") + "Z";

function picture(nodes) {
  const paths = new Map(), across = Math.min(ACROSS, nodes.length);
  for (const [i, node] of nodes.entries()) {
    const x = i % ACROSS * CELL, y = Math.floor(i / ACROSS) * CELL, { name, shape } = kindOf(node);
    paths.set(name, (paths.get(name) || "") + outline(shape, x, y));
    if (absent.is(node)) paths.set(absent.name, (paths.get(absent.name) || "") + `M${x} ${y}` + CROSS);
  }
  const height = Math.ceil(nodes.length / ACROSS) * CELL;
  // Tiles that stand out are drawn over their neighbours.
  const order = [...kinds.map((k) => k.name).reverse(), absent.name].filter((name) => paths.has(name));
  return svg("svg", { class: "map", viewBox: `-2 -2 ${across * CELL + 4} ${height + 4}`, width: across * CELL + 4, height: height + 4, "aria-hidden": "true" },
    order.map((name) => svg("path", { class: `t-${name}`, d: paths.get(name) })));
}

// How many nodes of each kind, the worst first: "2 slow, sure; 1 does not respond".
export function summary(nodes) {
  const texts = kinds.slice(0, 3).map((kind) => [nodes.filter(kind.is).length, kind.text]);
  texts.push([nodes.filter(absent.is).length, absent.text], [nodes.filter((n) => n.percent === null && !n.grade).length, "not judged"]);
  return texts.filter(([n]) => n).map(([n, text]) => `${whole(n)} ${n > 1 ? text.replace("does not", "do not") : text}`).join("; ") || "all fine";
}

export function legend(nodes) {
  const counts = new Map(kinds.map((kind) => [kind, 0]));
  for (const node of nodes) counts.set(kindOf(node), counts.get(kindOf(node)) + 1);
  const entry = (name, d, text, n) => make("li", {}, svg("svg", { class: "map", viewBox: "-2 -2 16 16", width: 16, height: 16, "aria-hidden": "true" },
    svg("path", { class: `t-${name}`, d })), `${text}: ${whole(n)}`);
  const away = nodes.filter(absent.is).length;
  return make("ul", { class: "legend", "aria-label": "Tiles" }, kinds.filter((kind) => counts.get(kind)).map((kind) => entry(kind.name, outline(kind.shape, 0, 0), kind.text, counts.get(kind))),
    away > 0 && entry(absent.name, `M0 0${CROSS}`, absent.text, away));
}

// The node at a place of the picture of its group.
function nodeAt(event, nodes) {
  const image = event.target.closest("svg");
  if (!image) return null;
  const box = image.getBoundingClientRect(), unit = box.width / image.viewBox.baseVal.width;
  const x = Math.floor(((event.clientX - box.left) / unit - 2) / CELL), y = Math.floor(((event.clientY - box.top) / unit - 2) / CELL);
  return x >= 0 && x < ACROSS && y >= 0 ? nodes[y * ACROSS + x] || null : null;
}

// Racks that have a name first, then the others by their names: [{label, nodes}].
function grouped(nodes) {
  const racks = new Map(), others = [];
  for (const node of nodes)
    if (!node.rack) others.push(node);
    else if (racks.has(node.rack)) racks.get(node.rack).push(node);
    else racks.set(node.rack, [node]);
  const order = new Intl.Collator("en", { numeric: true });
  return [...[...racks].sort(([a], [b]) => order.compare(a, b)).map(([label, list]) => ({ label, nodes: list })),
    ...groups(others.map((n) => n.name)).map(({ label, from, to }) => ({ label, nodes: others.slice(from, to) }))];
}

// All tiles: {element, groups}. nodes: [{name, state, grade, percent (null: not judged), metric, rack}] in order.
// read(text) is called with the node below the pointer, open(node) for a tile that is clicked, and
// unfold(group) for a group: by its name, or by the keyboard.
export function tiles(nodes, { read, open, unfold }) {
  const all = grouped(nodes);
  const element = make("ul", { class: "groups" + (nodes.length <= LARGE_MOST ? " large" : ""), "aria-label": "Groups of nodes" }, all.map((group) => make("li", {},
    make("button", { type: "button", "aria-expanded": "false", "aria-label": `${group.label}: ${count(group.nodes.length, "node")}, ${summary(group.nodes)}`,
      onclick: (event) => {
        const node = event.detail > 0 && nodeAt(event, group.nodes); // 0: by the keyboard
        if (node) open(node);
        else unfold(group, event.currentTarget);
      },
      onmousemove: (event) => {
        const node = nodeAt(event, group.nodes);
        read(node ? describe(node) : `${group.label}: ${summary(group.nodes)}`);
      } }, make("span", { class: "label" }, group.label), picture(group.nodes)))));
  return { element, groups: all };
}

