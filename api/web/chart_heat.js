// SPDX-License-Identifier: Apache-2.0
// A heat map as SVG. Dark is little and bright is much, as in the daemon's pictures. Values within
// 3 % have one colour, and a scale spans at least 30 % of the largest value, so that a small
// difference looks small. A difference of two runs is blue where the second is faster, red where
// it is slower, and spans at least 20 % to each side.
import { make, svg } from "./dom.js";
import { bytes, figures, percent, words } from "./format.js";

const TILES_MAX = 64;       // to each side; of more cells, a tile is a block
const NUMBERS_MAX = 16;     // columns whose cells have their number in them
const EVEN = 0.03, LEAST = 0.3, LOG_FROM = 10;
const LEAST_PERCENT = 20;
const RAMP = [[43, 16, 85], [47, 75, 154], [31, 138, 154], [88, 191, 106], [246, 230, 90]];
// From faster to slower, over the page's background: no difference is no colour.
const DIVERGING = {
  light: [[33, 102, 172], [146, 197, 222], [243, 245, 248], [244, 165, 130], [178, 24, 43]],
  dark: [[90, 170, 255], [52, 92, 150], [38, 46, 57], [140, 64, 58], [255, 112, 98]],
};

const middle = (list) => {
  const sorted = [...list].sort((a, b) => a - b), n = sorted.length;
  return n ? (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2 : NaN;
};
const largest = (list) => list.reduce((a, b) => Math.abs(b) > Math.abs(a) ? b : a, 0);

function mix(ramp, share) {
  const at = Math.max(0, Math.min(1, share)) * (ramp.length - 1), i = Math.min(ramp.length - 2, Math.floor(at));
  return ramp[i].map((from, c) => Math.round(from + (at - i) * (ramp[i + 1][c] - from)));
}

const rgb = (c) => `rgb(${c.join(" ")})`;
const inkOn = ([r, g, b]) => 0.2126 * (r / 255) ** 2.2 + 0.7152 * (g / 255) ** 2.2 + 0.0722 * (b / 255) ** 2.2 > 0.2 ? "#000" : "#fff";

// How a value becomes a share of the colours.
function scaleOf(values, diverging) {
  const lo = Math.min(...values), hi = Math.max(...values);
  if (diverging) {
    const span = Math.max(LEAST_PERCENT, -lo, hi);
    return { ramp: DIVERGING[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"], share: (v) => 0.5 + v / (2 * span), ends: [-span, span] };
  }
  if (!(hi - lo > EVEN * Math.abs(hi))) return { ramp: RAMP, share: () => 0.5, ends: null };
  if (lo > 0 && hi >= LOG_FROM * lo) return { ramp: RAMP, share: (v) => Math.log(v / lo) / Math.log(hi / lo), ends: [lo, hi], log: true };
  const least = LEAST * Math.abs(hi), from = hi - lo < least ? (lo + hi - least) / 2 : lo, span = Math.max(hi - lo, least);
  return { ramp: RAMP, share: (v) => (v - from) / span, ends: [from, from + span] };
}

// Values of an axis for people: names, sizes or numbers.
export function labels(axis) {
  return axis.labels || axis.values.map((v) => axis.unit === "bytes" ? bytes(v) : `${v}${axis.unit === "%" ? " %" : ""}`);
}

function legend(scale, text) {
  const bar = Array.from({ length: 24 }, (_, i) => svg("rect", { x: i * 8, y: 0, width: 8.5, height: 10, fill: rgb(mix(scale.ramp, i / 23)) }));
  return make("p", { class: "scale" }, make("span", {}, text(scale.ends[0])), svg("svg", { viewBox: "0 0 192 10", width: 192, height: 10, "aria-hidden": "true" }, bar), make("span", {}, text(scale.ends[1])), scale.log && make("span", { class: "quiet" }, "logarithmic"));
}

// Fills root. m: {name, quantity, unit, rows, cols, cells, disturbed(cell), diverging, titles(i, j)}.
// With diverging, the medians are differences in per cent.
export function drawHeat(root, m) {
  const text = (v) => m.diverging ? percent(v) : figures(v), unit = m.diverging ? "" : ` ${m.unit}`;
  const values = m.cells.flat().map((c) => c && c.median).filter((v) => v !== null && v !== undefined && Number.isFinite(v));
  if (!values.length) {
    root.append(make("p", {}, "No value was measured."));
    return;
  }
  const R = m.rows.values.length, C = m.cols.values.length, rows = labels(m.rows), cols = labels(m.cols);
  const nameOf = (i, j) => `${words(m.rows.name)} ${rows[i]}, ${words(m.cols.name)} ${cols[j]}`;
  if (values.length === 1) {
    const at = m.cells.flat().findIndex((c) => c && c.median !== null);
    root.append(make("p", { class: "single" }, make("b", {}, text(values[0]) + unit), ` ${nameOf(Math.floor(at / C), at % C)}`));
    return;
  }
  const perRow = Math.ceil(R / TILES_MAX), perCol = Math.ceil(C / TILES_MAX), tiles = [];
  for (let i = 0; i < R; i += perRow)
    for (let j = 0; j < C; j += perCol) {
      const block = m.cells.slice(i, i + perRow).flatMap((row) => row.slice(j, j + perCol)).filter((c) => c && c.median !== null && Number.isFinite(c.median));
      if (block.length) tiles.push({ i, j, cell: block[0], v: (m.diverging ? largest : middle)(block.map((c) => c.median)), hollow: m.disturbed && 2 * block.filter(m.disturbed).length > block.length });
    }
  const scale = scaleOf(tiles.map((t) => t.v), m.diverging);
  const nRows = Math.ceil(R / perRow), nCols = Math.ceil(C / perCol), written = nCols <= NUMBERS_MAX && perRow === 1;
  const left = 14 + 7.5 * Math.max(...rows.map((r) => r.length), 2) + 20, top = 46, right = 24;
  const width = written ? Math.max(58, Math.min(120, 700 / nCols)) : Math.max(8, Math.min(40, 700 / nCols)), height = written ? 30 : Math.max(8, Math.min(24, 700 / nRows));
  const readout = make("p", { class: "readout" }, "Point at a cell to read it.");
  const picture = svg("svg", { viewBox: `0 0 ${left + nCols * width + right} ${top + nRows * height + 8}`, class: "heat", role: "img",
    "aria-label": `${words(m.quantity)} by ${words(m.rows.name)} and ${words(m.cols.name)}. ${m.diverging ? "The tables below have the values by group." : "The numbers below have the values."}` });
  picture.style.width = `${left + nCols * width + right}px`;
  picture.append(svg("text", { x: left + nCols * width / 2, y: 14, "text-anchor": "middle" }, words(m.cols.name)),
    svg("text", { x: 12, y: top + nRows * height / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${top + nRows * height / 2})` }, words(m.rows.name)));
  const everyCol = Math.ceil((7.5 * Math.max(...cols.map((c) => c.length)) + 8) / width), everyRow = Math.ceil(15 / height);
  for (let j = 0; j < nCols; j += everyCol) picture.append(svg("text", { x: left + (j + 0.5) * width, y: top - 8, "text-anchor": "middle" }, cols[j * perCol]));
  for (let i = 0; i < nRows; i += everyRow) picture.append(svg("text", { x: left - 6, y: top + (i + 0.5) * height + 4, "text-anchor": "end" }, rows[i * perRow]));
  for (const t of tiles) {
    const x = left + t.j / perCol * width, y = top + t.i / perRow * height, fill = mix(scale.ramp, scale.share(t.v));
    const about = perRow * perCol > 1 ? `${nameOf(t.i, t.j)} to ${nameOf(Math.min(R, t.i + perRow) - 1, Math.min(C, t.j + perCol) - 1)}` : nameOf(t.i, t.j);
    const said = `${about}: ${text(t.v)}${unit}${t.hollow ? ", disturbed" : ""}${t.cell.about && perRow * perCol === 1 ? `, ${t.cell.about}` : ""}`;
    picture.append(svg("g", { onmouseenter: () => { readout.textContent = said; } },
      svg("title", {}, said), svg("rect", { x, y, width: width - 1, height: height - 1, fill: rgb(fill), class: t.cell.strong && perRow * perCol === 1 ? "strong" : null }),
      t.hollow && svg("rect", { x: x + 3, y: y + 3, width: width - 7, height: height - 7, fill: "none", stroke: inkOn(fill), "stroke-dasharray": "3 2" }),
      written && svg("text", { x: x + width / 2, y: y + height / 2 + 4.5, "text-anchor": "middle", fill: inkOn(fill) }, text(t.v))));
  }
  const notes = [perRow * perCol > 1 && `${R} × ${C} cells: each tile is ${m.diverging ? "the largest difference" : "the median"} of up to ${perRow} × ${perCol} cells.`,
    !scale.ends && "All values are within 3 %: one colour.", tiles.some((t) => t.hollow) && "Dashed: disturbed, many samples were left out."].filter(Boolean);
  root.append(...[make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `heat map of ${words(m.quantity)}` }, picture),
    scale.ends && legend(scale, (v) => text(v) + unit), readout, notes.length > 0 && make("p", { class: "quiet note" }, notes.join(" "))].filter(Boolean));
}
