// SPDX-License-Identifier: Apache-2.0
// A frame with two axes on uPlot: ticks, zoom by dragging, and where the pointer is. Its user draws
// into it, because a curve may go back in x, and a thousand lines need another weight than one.
import uPlot from "./uPlot.esm.js";
import { make } from "./dom.js";

const TALL = 400, LOW = 300, NARROW = 600; // CSS pixels: heights, and the width below which it is low
const STILL = 4; // a press and a release within so many pixels are a click

let sheet = null; // uPlot's rules, once

function loadSheet() {
  sheet ||= new Promise((done) => {
    const link = make("link", { rel: "stylesheet", href: "web/uPlot.min.css" });
    link.onload = link.onerror = done;
    document.head.append(link);
  });
  return sheet;
}

// The page's colour of that name: "--series-1".
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Round values from lo to hi, about `count` of them: [[place, text]].
export function roundTicks(lo, hi, count) {
  const raw = (hi - lo) / Math.max(1, count), size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * size).find((s) => s >= raw);
  const found = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9 && found.length < 50; i++)
    found.push([i * step, String(Number((i * step).toPrecision(10)))]);
  return found;
}

// The same where places are logarithms to the base 10: 1, 2 and 5 of each power, or some powers alone.
export function logTicks(lo, hi, count) {
  const decades = hi - lo, found = [];
  if (decades < 0.5) {
    for (const [value, text] of roundTicks(10 ** lo, 10 ** hi, count)) if (value > 0) found.push([Math.log10(value), text]);
    return found;
  }
  const every = Math.max(1, Math.ceil(decades / count)), steps = decades * 3 <= count * 1.5 ? [1, 2, 5] : [1];
  for (let e = Math.floor(lo); e <= hi; e += every)
    for (const n of steps) {
      const at = e + Math.log10(n);
      if (at >= lo - 1e-9 && at <= hi + 1e-9) found.push([at, String(Number((n * 10 ** e).toPrecision(3)))]);
    }
  return found;
}

function axis(of, which, redone) {
  let texts = new Map();
  const font = () => getComputedStyle(document.body);
  const size = () => parseFloat(font().fontSize) * 0.78;
  const name = () => `${size()}px ${font().fontFamily}`;
  return {
    scale: which,
    label: of.title,
    labelFont: name(),
    labelSize: size() * 1.6,
    font: name(),
    size: (u, values) => which === "x" ? size() * 2.6 : 16 + size() * 0.62 * Math.max(2, ...(values || []).map((v) => v.length)),
    stroke: () => colour("--quiet"),
    grid: { stroke: () => colour("--line"), width: 1, show: which === "y" },
    ticks: { stroke: () => colour("--line"), width: 1, size: 5 },
    filter: (u, splits) => splits,
    splits: (u, i, lo, hi) => {
      const found = of.ticks(lo, hi, Math.max(2, Math.floor((which === "x" ? u.bbox.width / 60 : u.bbox.height / 45) / devicePixelRatio)));
      texts = new Map(found);
      return found.map(([at]) => at);
    },
    values: (u, splits) => splits.map((at) => texts.get(at) ?? ""),
  };
}

// Where places of the axes are on the canvas, for a user that draws.
function canvasOf(u) {
  return { ctx: u.ctx, box: u.bbox, ratio: devicePixelRatio, x: (v) => u.valToPos(v, "x", true), y: (v) => u.valToPos(v, "y", true) };
}

// Fills host. x and y: {range: [lo, hi], ticks(lo, hi, count) -> [[place, text]], title}. draw(canvas)
// draws everything but the axes. hover(find) and click(find) get find(x, y) -> distance in CSS
// pixels of a place from the pointer, or null when the pointer has left. zoomed(range of x or null)
// is called when the range changes. `label` is what the picture shows, for a screen reader.
// Returns {redraw, reset, show(lo, hi), change({x, y}), stop}.
export async function plot(host, { label, x, y, draw, hover, click, zoomed }) {
  await loadSheet();
  const axes = { x, y };
  host.setAttribute("role", "img");
  host.setAttribute("aria-label", label);
  let zoom = false, pressed = null;
  const height = () => host.clientWidth < NARROW ? LOW : TALL * Math.max(1, parseFloat(getComputedStyle(document.body).fontSize) / 16);
  const size = () => ({ width: Math.max(200, host.clientWidth), height: Math.round(height()) });
  const finder = (left, top) => (px, py) => Math.hypot(u.valToPos(px, "x") - left, u.valToPos(py, "y") - top);
  const u = new uPlot({
    ...size(),
    legend: { show: false },
    // uPlot requests the range of x also for a part of it that was chosen.
    scales: { x: { time: false, auto: false, range: (self, lo, hi) => [lo, hi] }, y: { auto: false, range: () => axes.y.range } },
    axes: [axis(x, "x"), axis(y, "y")],
    series: [{}, { scale: "y", paths: () => null, points: { show: false } }],
    cursor: { points: { show: false }, drag: { x: true, y: true, uni: 30, setScale: true }, bind: { dblclick: () => () => reset() } },
    hooks: {
      draw: [() => {
        const { ctx, box } = canvasOf(u);
        ctx.save();
        ctx.beginPath();
        ctx.rect(box.left - 6, box.top - 6, box.width + 12, box.height + 12);
        ctx.clip();
        draw(canvasOf(u));
        ctx.restore();
      }],
      setCursor: [() => hover && hover(u.cursor.left >= 0 ? finder(u.cursor.left, u.cursor.top) : null)],
      setScale: [(self, which) => {
        if (which !== "x") return;
        const { min, max } = self.scales.x, [lo, hi] = axes.x.range;
        zoom = min !== lo || max !== hi;
        if (zoomed) zoomed(zoom ? [min, max] : null);
      }],
    },
  }, [x.range, y.range], host);

  function show(lo, hi) {
    u.batch(() => {
      u.setScale("x", { min: lo, max: hi });
      u.setScale("y", { min: axes.y.range[0], max: axes.y.range[1] });
    });
  }
  const reset = () => show(...axes.x.range);

  u.over.addEventListener("mousedown", (event) => { pressed = [event.clientX, event.clientY]; });
  u.over.addEventListener("click", (event) => {
    if (click && pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) < STILL)
      click(finder(event.offsetX, event.offsetY));
  });
  let width = host.clientWidth;
  const watch = new ResizeObserver(() => {
    if (host.clientWidth && host.clientWidth !== width) u.setSize(size());
    width = host.clientWidth;
  });
  watch.observe(host);
  const scheme = matchMedia("(prefers-color-scheme: dark)"), redraw = () => u.redraw(false, true);
  scheme.addEventListener("change", redraw);
  return {
    redraw,
    reset,
    show,
    change(to) {
      Object.assign(axes, to);
      u.axes[1].label = axes.y.title;
      Object.assign(x, axes.x);
      Object.assign(y, axes.y);
      reset();
    },
    stop() {
      watch.disconnect();
      scheme.removeEventListener("change", redraw);
      u.destroy();
    },
  };
}
