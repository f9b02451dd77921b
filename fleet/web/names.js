// SPDX-License-Identifier: Apache-2.0
// Names of nodes: runs of them, and their groups.

const GROUP_MOST = 128; // nodes of one prefix; more are groups of BLOCK numbers
const BLOCK = 100;

const numbers = new Intl.NumberFormat("en");

// 10000 -> "10,000"
export const whole = (n) => numbers.format(n);

// (1, "node") -> "1 node"; (2, "class", "classes")
export const count = (n, one, many = one + "s") => `${whole(n)} ${n === 1 ? one : many}`;

// ["node[09-10]", "login"] -> ["node09", "node10", "login"]
export function expand(runs) {
  const names = [];
  for (const run of runs) {
    const [, prefix, first, last, end] = /^(.*)\[(\d+)-(\d+)\](.*)$/.exec(run) || [];
    if (first === undefined) names.push(run);
    else for (let i = Number(first); i <= Number(last); i++) names.push(prefix + String(i).padStart(first.length, "0") + end);
  }
  return names;
}

const NUMBERED = /^(.*?)(\d+)(\D*)$/;

// The text before the last number of a name, its rack where the name has one: "r01n12" -> "r01n".
function prefixOf(name) {
  const [, prefix, digits, end] = NUMBERED.exec(name) || [null, name, "", ""];
  return { prefix: prefix.replace(/\d+$/, (d) => d), digits, end };
}

// A set only where it has no other nodes.
function labelOf(names) {
  if (names.length === 1) return names[0];
  const first = prefixOf(names[0]), last = prefixOf(names.at(-1));
  return first.prefix === last.prefix && first.end === last.end && first.digits && last.digits && last.digits - first.digits === names.length - 1 ?
    `${first.prefix}[${first.digits}-${last.digits}]${first.end}` : `${names[0]} to ${names.at(-1)}`;
}

// Names in order -> [{label, from, to}]: parts of the list that stand together. They have one prefix,
// which is the rack in names like r01n12. A prefix with many nodes is divided by their numbers.
export function groups(names) {
  const parts = names.map(prefixOf), sizes = new Map(), found = [];
  for (const { prefix, end } of parts) sizes.set(prefix + "*" + end, (sizes.get(prefix + "*" + end) || 0) + 1);
  let last = null;
  for (const [i, { prefix, digits, end }] of parts.entries()) {
    const key = prefix + "*" + end, many = sizes.get(key) > GROUP_MOST;
    // 1 to 100, 101 to 200: nodes are mostly numbered from 1
    const group = key + (many ? Math.floor((Number(digits) - 1) / BLOCK) : "");
    if (group !== last) found.push({ from: i, to: i });
    found.at(-1).to = i + 1;
    last = group;
  }
  // Names without a number, and single ones, are one group where they follow each other.
  const joined = [];
  for (const g of found) {
    const before = joined.at(-1);
    if (before && before.single && g.to - g.from === 1) before.to = g.to;
    else joined.push({ ...g, single: g.to - g.from === 1 });
  }
  return joined.map(({ from, to }) => ({ from, to, label: labelOf(names.slice(from, to)) }));
}
