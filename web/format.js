// SPDX-License-Identifier: Apache-2.0
// Numbers, times and lists as people read them.

// 4194304 -> "4M", as the command line and reports write sizes
export function bytes(n) {
  const units = ["B", "K", "M", "G", "T", "P"];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return (Number.isInteger(n) ? n : n.toFixed(1)) + units[u];
}

// [0, 1, 2, 5] -> "0-2,5"
export function ranges(ids) {
  const parts = [];
  for (const id of ids) {
    const last = parts.at(-1);
    if (last && last[1] === id - 1) last[1] = id;
    else parts.push([id, id]);
  }
  return parts.map(([a, b]) => (a === b ? a : `${a}-${b}`)).join(",") || "none";
}

// "0,1,2,5" -> "0-2,5". Lists in another order, and other texts, are not changed.
export function short(list) {
  const ids = String(list).split(",").map(Number);
  return ids.length > 2 && ids.every((id, i) => Number.isInteger(id) && !(id <= ids[i - 1])) ? ranges(ids) : String(list);
}

// "2026-11-23T10:50:23Z" -> "2026-11-23 10:50", in UTC as the command line has it
export function when(time) {
  return time ? time.slice(0, 16).replace("T", " ") : "";
}

// Seconds -> "3 h"
export function age(seconds) {
  for (const [length, name] of [[86400, "d"], [3600, "h"], [60, "min"]])
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${name}`;
  return `${Math.max(0, Math.floor(seconds))} s`;
}

// How long a run took: 0.9 s, 119.5 s, 3 min
export const took = (seconds) => seconds < 120 ? `${seconds.toFixed(1)} s` : age(seconds);

// Three figures: 1.23, 12.3, 123
export function figures(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 || value === 0 ? 0 : size >= 10 ? 1 : 2);
}

// 1234 -> "1.23 µs"
export function nanoseconds(ns) {
  const [scale, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e4 ? [1e3, "µs"] : [1, "ns"];
  return `${figures(ns / scale)} ${unit}`;
}

// 5.83 -> "+5.8 %"
export function percent(value) {
  return `${value > 0 ? "+" : ""}${value.toFixed(1)} %`;
}

// A name of the interface as words: "working_set" -> "working set"
export const words = (name) => name.replaceAll("_", " ");

// "1 run", "2 runs", also of numbers below zero.
export const runCount = (n) => `${Math.abs(n)} run${Math.abs(n) === 1 ? "" : "s"}`;
