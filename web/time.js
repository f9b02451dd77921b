// SPDX-License-Identifier: Apache-2.0
// A series over time: its axis, its changes in words, and the levels between them.
import { runCount, words } from "./format.js";
import { colour } from "./plot.js";

export const HOUR = 3600e3, DAY = 24 * HOUR;
const STEPS = [60e3, 5 * 60e3, 15 * 60e3, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 182 * DAY, 365 * DAY];

// Days, hours or minutes in UTC: [[place, text]], about `count` of them.
export function timeTicks(lo, hi, count) {
  const step = STEPS.find((s) => (hi - lo) / s <= count) || Math.ceil((hi - lo) / count / STEPS.at(-1)) * STEPS.at(-1);
  const found = [];
  for (let t = Math.ceil(lo / step) * step; t <= hi; t += step) {
    const text = new Date(t).toISOString();
    found.push([t, step >= DAY ? text.slice(hi - lo > 300 * DAY ? 2 : 5, 10) : t % DAY === 0 ? text.slice(5, 10) : text.slice(11, 16)]);
  }
  return found;
}

// What changed on the machine: "microcode: 0x1000065 → 0x1000070".
export function changeText(f) {
  return `${words(f.name)}: ${f.before ?? "not known"} → ${f.after ?? "not known"}`;
}

// What stands before the list of them: when the set-up changed, if it was not with the first run after the change.
export function causeHead({ fact_changes: facts, setup_runs: runs }) {
  if (facts === null) return "What changed on the machine is not known.";
  if (!facts.length) return "Nothing that is known of the machine changed.";
  return `Changed on the machine${runs ? ` ${runCount(runs)} ${runs < 0 ? "earlier" : "later"}` : ""}:`;
}

// The levels between the changes, and a line with its number at each.
export function levels(points, changes) {
  const ends = [...changes.map((c) => Date.parse(c.at)), points.at(-1).x];
  let from = points[0].x;
  return changes.length ? [...changes.map((c, i) => ({ value: c.before, to: ends[i] })), { value: changes.at(-1).after, to: ends.at(-1) }].map((l) => {
    const level = { value: l.value, from, to: l.to };
    from = l.to;
    return level;
  }) : [];
}

export function drawLevels(list, { ctx, x, y, ratio }, place) {
  ctx.strokeStyle = colour("--warn");
  ctx.lineWidth = 2.5 * ratio;
  for (const { value, from, to } of list) {
    ctx.beginPath();
    ctx.moveTo(x(from), y(place(value)));
    ctx.lineTo(x(to), y(place(value)));
    ctx.stroke();
  }
}

