// SPDX-License-Identifier: Apache-2.0
// Lines that can be touched: hover, focus on one, zoom, a legend of buttons. Up to LINES_MAX lines
// are drawn alike. Of more, the median and those that differ most are, and the rest is faint.
import { colour, logTicks, plot, roundTicks } from "./plot.js";
import { make } from "./dom.js";
import { figures } from "./format.js";

const LINES_MAX = 16;      // with a button each
const OUTLIERS_MAX = 6;    // of more lines, those that are drawn like the median
const OUTLIER_SPREADS = 5; // robust standard deviations from the median line
const OUTLIER_SHARE = 0.03; // and at least this share of it
const BANDS_MAX = 4;       // lines whose intervals are all shown; of more, that of the focus
const DOTS_MAX = 80;       // points of a line that are drawn as dots
const LOG_FROM = 30;       // y is logarithmic when the largest value is so many times the smallest
const BAND_ROOM = 3;       // how many times beyond the values the axis follows their intervals
const REACH = 40;          // CSS pixels from the pointer to the nearest point
const SERIES = 8;          // colours

const middle = (list) => {
  const sorted = [...list].sort((a, b) => a - b), n = sorted.length;
  return n ? (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2 : NaN;
};

// The median of all lines at each place that two of them share.
function medianLine(lines, name) {
  const at = new Map();
  for (const { points } of lines)
    for (const p of points) at.has(p.x) ? at.get(p.x).list.push(p.y) : at.set(p.x, { p, list: [p.y] });
  const points = [...at.values()].map(({ p, list }) => ({ x: p.x, at: p.at, y: middle(list) })).sort((a, b) => a.x - b.x);
  return { key: "median", name, points };
}

// The lines whose median difference from the median line stands out most.
function outliers(lines, median) {
  const normal = new Map(median.points.map((p) => [p.x, p.y]));
  const away = lines.map((line) => middle(line.points.map((p) => Math.log(p.y / normal.get(p.x))).filter(Number.isFinite)));
  const center = middle(away.filter(Number.isFinite));
  const spread = 1.4826 * middle(away.filter(Number.isFinite).map((a) => Math.abs(a - center)));
  const limit = Math.max(OUTLIER_SPREADS * spread, Math.log1p(OUTLIER_SHARE));
  return lines.map((line, i) => [Math.abs(away[i] - center), line]).filter(([a]) => a > limit)
    .sort((a, b) => b[0] - a[0]).map(([, line]) => line);
}

// The same for two runs: the medians of both, and in both the lines that stand out in one.
function weighSides(lines, of) {
  const sides = [...new Set(lines.map((l) => l.side))].map((side) => lines.filter((l) => l.side === side));
  const medians = sides.map((side) => {
    const { sideName, series, dashed } = side[0];
    return { ...medianLine(side, `median, ${sideName}`), key: `median, ${sideName}`, series, dashed };
  });
  const keys = [...new Set(sides.flatMap((side, i) => outliers(side, medians[i]).slice(0, OUTLIERS_MAX / 2).map((l) => l.key)))];
  const kept = lines.filter((l) => keys.includes(l.key));
  return { main: [...medians, ...kept], faint: lines.filter((l) => !kept.includes(l)),
    note: `${Math.max(...sides.map((s) => s.length))} ${of}s: the medians are emphasized${kept.length ? `, and ${of}s that are far from them` : ""}. The others are faint.` };
}

// Which lines have a weight of their own: {main, faint, note}.
function weigh(lines, of, compared) {
  if (lines.length <= LINES_MAX * (compared ? 2 : 1)) return { main: lines, faint: [], note: "" };
  if (compared) return weighSides(lines, of);
  const median = { ...medianLine(lines, `median of ${lines.length} ${of}s`), ink: true };
  const odd = outliers(lines, median), kept = odd.slice(0, OUTLIERS_MAX);
  const some = kept.length === 1 ? `so is the ${of}` : `so are the ${kept.length} ${of}s`;
  const text = (kept.length ? `${some} furthest from it` : `no ${of} stands out`) + (odd.length > kept.length ? ` (of ${odd.length} that stand out)` : "");
  return { main: [median, ...kept], faint: lines.filter((l) => !kept.includes(l)),
    note: `${lines.length} ${of}s: the median is emphasized, and ${text}. The other ${lines.length - kept.length} are faint.` };
}

function rangeOf(lines, reach, logarithmic) {
  const values = lines.flatMap((l) => l.points.map((p) => p.y)).concat(reach).filter((v) => Number.isFinite(v) && (!logarithmic || v > 0));
  let lo = values.reduce((a, b) => Math.min(a, b), Infinity), hi = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!(lo <= hi)) return [0, 1];
  const room = BAND_ROOM * ((hi - lo) || hi * 0.02);
  for (const { points } of lines)
    for (const p of points) {
      if (Number.isFinite(p.lo)) lo = Math.min(lo, Math.max(p.lo, lo - room, logarithmic ? lo / 2 : -Infinity));
      if (Number.isFinite(p.hi)) hi = Math.max(hi, Math.min(p.hi, hi + room));
    }
  if (logarithmic) return [Math.log10(lo) - 0.04, Math.log10(hi) + 0.04];
  const slack = (hi - lo) * 0.06 || Math.abs(hi) * 0.05 || 1;
  return lo >= 0 && lo < 0.6 * hi ? [0, hi + slack] : [lo - slack, hi + slack];
}

// Draws what is visible. `state` has the focus (a key), the kept keys and the marked point.
function painter(model, weights, state) {
  const place = (y) => state.logarithmic ? Math.log10(y) : y;
  const known = (p) => Number.isFinite(p.y) && (!state.logarithmic || p.y > 0);

  function path({ ctx, x, y }, points) {
    let joined = false;
    ctx.beginPath();
    for (const p of points) {
      if (known(p)) ctx[joined ? "lineTo" : "moveTo"](x(p.x), y(place(p.y)));
      joined = known(p);
    }
    ctx.stroke();
  }

  function band(canvas, points) {
    const { ctx, x, y } = canvas, low = (p) => y(state.logarithmic ? Math.log10(Math.max(p.lo, p.y / 1e3)) : p.lo);
    for (let from = 0; from < points.length; from++) {
      let to = from;
      while (to < points.length && Number.isFinite(points[to].lo) && Number.isFinite(points[to].hi) && known(points[to])) to++;
      if (to === from) continue;
      const part = points.slice(from, to);
      ctx.beginPath();
      for (const p of part) ctx.lineTo(x(p.x), y(place(p.hi)));
      for (const p of [...part].reverse()) ctx.lineTo(x(p.x), low(p));
      if (part.length > 1) ctx.fill();
      else { // one value has a bar
        ctx.save();
        ctx.strokeStyle = ctx.fillStyle;
        ctx.beginPath();
        ctx.moveTo(x(part[0].x), y(place(part[0].hi)));
        ctx.lineTo(x(part[0].x), low(part[0]));
        ctx.lineWidth = 6 * canvas.ratio;
        ctx.stroke();
        ctx.restore();
      }
      from = to;
    }
  }

  function dots({ ctx, x, y, ratio }, line, card) {
    for (const p of line.points) {
      if (!known(p)) continue;
      ctx.beginPath();
      ctx.arc(x(p.x), y(place(p.y)), (p.hollow ? 3.4 : 2.8) * ratio, 0, 2 * Math.PI);
      ctx.fillStyle = p.hollow ? card : ctx.strokeStyle;
      ctx.fill();
      if (p.hollow) ctx.stroke();
    }
  }

  function marks({ ctx, box, ratio, x }, quiet) {
    let last = -Infinity, raised = 0;
    ctx.strokeStyle = ctx.fillStyle = quiet;
    ctx.lineWidth = ratio;
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    for (const mark of model.marks || []) {
      const at = x(mark.x);
      if (at < box.left || at > box.left + box.width) continue;
      raised = at < last + 60 * ratio ? raised + 1 : 0;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(at, box.top);
      ctx.lineTo(at, box.top + box.height);
      ctx.stroke();
      const end = at + ctx.measureText(mark.text).width + 8 * ratio > box.left + box.width;
      ctx.textAlign = end ? "right" : "left";
      ctx.fillText(mark.text, at + (end ? -4 : 4) * ratio, box.top + (12 + 14 * (raised % 3)) * ratio);
      last = at;
    }
    ctx.setLineDash([]);
  }

  return (canvas) => {
    const { ctx, ratio } = canvas, ink = colour("--ink"), card = colour("--card"), quiet = colour("--quiet");
    const series = Array.from({ length: SERIES }, (_, i) => colour(`--series-${i + 1}`));
    const strokeOf = (line) => line.ink ? ink : series[line.series % SERIES];
    const chosen = new Set(state.focus === null ? state.kept : [...state.kept, state.focus]);
    ctx.lineJoin = "round";
    marks(canvas, quiet);
    ctx.lineWidth = ratio;
    ctx.globalAlpha = chosen.size ? 0.08 : weights.faint.length > 200 ? 0.12 : 0.25;
    for (const line of weights.faint) {
      ctx.strokeStyle = strokeOf(line);
      path(canvas, line.points);
    }
    const drawn = [...weights.main, ...weights.faint.filter((l) => chosen.has(l.key))];
    for (const line of [...drawn.filter((l) => !chosen.has(l.key)), ...drawn.filter((l) => chosen.has(l.key))]) {
      const loud = chosen.has(line.key), quieter = chosen.size && !loud;
      ctx.strokeStyle = ctx.fillStyle = strokeOf(line);
      ctx.globalAlpha = quieter ? 0.05 : 0.18;
      if (loud || weights.main.length <= BANDS_MAX) band(canvas, line.points);
      ctx.globalAlpha = quieter ? 0.22 : 1;
      ctx.lineWidth = (loud || line.ink ? 3 : 1.8) * ratio;
      ctx.setLineDash(line.dashed ? [6 * ratio, 4 * ratio] : []);
      if (!line.alone) path(canvas, line.points);
      ctx.setLineDash([]);
      ctx.lineWidth = 1.5 * ratio;
      if (line.points.length <= DOTS_MAX || line.alone) dots(canvas, line, card);
    }
    ctx.globalAlpha = 1;
    if (model.over) model.over(canvas, place);
    if (!state.point) return;
    ctx.strokeStyle = ink;
    ctx.lineWidth = 2 * ratio;
    ctx.beginPath();
    ctx.arc(canvas.x(state.point.x), canvas.y(place(state.point.y)), 7 * ratio, 0, 2 * Math.PI);
    ctx.stroke();
  };
}

function swatch(line) {
  const mark = make("span", { class: "swatch" + (line.dashed ? " dashed" : "") });
  mark.style.setProperty("--stroke", line.ink ? "var(--ink)" : `var(--series-${line.series % SERIES + 1})`);
  return mark;
}

// Fills root with the lines of a model:
//   lines   [{key, name, series, dashed, points: [{x, y, lo, hi, hollow, at, more}]}]: x is a place, y a
//           value, `at` and `more` are texts. Lines with one key are one thing in two runs (side, sideName)
//   of      what a line is: "rank"
//   title   what the picture shows; x: {range, ticks, title, choices: [[place, text]] to zoom by}; unit, yTitle
//   marks   [{x, text}]; over(canvas, place): what is drawn above the lines; reach: other values in view
//   notes   texts below
//   open(point) what a click on a point does, instead of keeping its line
// Returns a function that stops it.
export async function drawLines(root, model) {
  const lines = model.lines.filter((l) => l.points.length);
  const weights = weigh(lines, model.of, lines.some((l) => l.side !== undefined));
  const low = lines.flatMap((l) => l.points).reduce((a, p) => p.y > 0 ? Math.min(a, p.y) : a, Infinity);
  const high = lines.flatMap((l) => l.points).reduce((a, p) => Math.max(a, p.y), 0);
  const state = { focus: null, kept: new Set(), point: null, logarithmic: model.linear ? false : high >= LOG_FROM * low };
  const readout = make("p", { class: "readout", role: "status" });
  const legend = make("ul", { class: "legend", "aria-label": `${model.of}s` });
  const buttons = new Map();
  const reset = make("button", { type: "button", hidden: true, onclick: () => frame.reset() }, "Reset zoom");
  const invite = model.open ? "Point at a value to read it. Click it to open its run." : model.alone ? "Point at a value to read it. Drag to zoom." :
    `Point at a value to read it. Click it to keep its ${model.of}. Drag to zoom.`;
  const yAxis = () => ({ title: model.yTitle + (state.logarithmic ? ", logarithmic" : ""), range: rangeOf([...weights.main, ...weights.faint], model.reach || [], state.logarithmic),
    ticks: state.logarithmic ? logTicks : roundTicks });

  function say(line, p) {
    const interval = p && Number.isFinite(p.lo) && Number.isFinite(p.hi) ? ` (${figures(p.lo)} to ${figures(p.hi)})` : "";
    readout.textContent = p ? `${line.name}, ${p.at}: ${figures(p.y)} ${model.unit}${interval}${p.more || ""}` : invite;
  }

  function nearest(find) {
    let best = null, least = REACH;
    for (const line of [...weights.main, ...weights.faint])
      for (const p of line.points) {
        if (!Number.isFinite(p.y) || (state.logarithmic && p.y <= 0)) continue;
        const away = find(p.x, state.logarithmic ? Math.log10(p.y) : p.y);
        if (away < least) [best, least] = [{ line, p }, away];
      }
    return best;
  }

  function mark(found) {
    const key = found ? found.line.key : null, point = found ? found.p : null;
    if (point === state.point && key === state.focus) return;
    Object.assign(state, { focus: model.alone ? null : key, point });
    say(found && found.line, point);
    frame.redraw();
  }

  function keep(key) {
    if (!state.kept.delete(key)) state.kept.add(key);
    for (const [of, button] of buttons) button.setAttribute("aria-pressed", state.kept.has(of));
    release.hidden = !state.kept.size;
    if (!buttons.has(key) && state.kept.has(key)) offer(lines.find((l) => l.key === key));
    frame.redraw();
  }

  // With the focus on a button, the arrow keys read one value after the other.
  function step(event, line) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key], points = line.points.filter((p) => Number.isFinite(p.y));
    if (!by || !points.length) return;
    event.preventDefault();
    const at = points.indexOf(state.point);
    mark({ line, p: points[Math.max(0, Math.min(points.length - 1, at < 0 ? 0 : at + by))] });
  }

  function offer(line) {
    const shared = lines.filter((l) => l.key === line.key).length > 1; // in both runs: it has no style of its own
    const button = make("button", { type: "button", "aria-pressed": String(state.kept.has(line.key)), onclick: () => keep(line.key),
      onmouseenter: () => { state.focus = line.key; frame.redraw(); }, onmouseleave: () => { state.focus = null; frame.redraw(); },
      onfocus: () => { state.focus = line.key; frame.redraw(); }, onblur: () => mark(null), onkeydown: (event) => step(event, line) },
    shared ? null : swatch(line), line.legend || line.name);
    buttons.set(line.key, button);
    legend.append(make("li", {}, button));
  }

  const release = make("button", { type: "button", hidden: true, onclick: () => { for (const key of [...state.kept]) keep(key); } }, "Show all alike");
  const scale = make("input", { type: "checkbox", checked: state.logarithmic, onchange: (event) => {
    state.logarithmic = event.target.checked;
    frame.change({ y: yAxis() });
  } });
  const more = weights.faint.length > 0 && make("label", { class: "beside" }, `Another ${model.of}`, make("select", { onchange: (event) => {
    if (event.target.value && !state.kept.has(event.target.value)) keep(event.target.value);
    event.target.value = "";
  } }, make("option", { value: "" }, "choose"), [...new Map(lines.map((l) => [l.key, l])).values()].map((l) => make("option", { value: l.key }, l.legend || l.name))));
  const ends = (model.x.choices || []).length > 2 && [0, 1].map((end) => make("select", { onchange: () => zoomTo() },
    model.x.choices.map(([at, text]) => make("option", { value: at, selected: at === model.x.choices.at(end ? -1 : 0)[0] }, text))));
  function zoomTo() {
    const [a, b] = ends.map((e) => Number(e.value)), whole = a === model.x.choices[0][0] && b === model.x.choices.at(-1)[0];
    const slack = (model.x.range[1] - model.x.range[0]) / 50;
    if (whole || a === b) frame.reset();
    else frame.show(Math.min(a, b) - slack, Math.max(a, b) + slack);
  }

  const controls = make("div", { class: "controls" },
    !model.linear && make("label", { class: "beside" }, scale, "Logarithmic values"),
    ends && [make("label", { class: "beside" }, "From", ends[0]), make("label", { class: "beside" }, "to", ends[1])], more, reset, release);
  const host = make("div", { class: "plot" });
  const notes = [weights.note, ...model.notes || []].filter(Boolean).map((text) => make("p", { class: "quiet note" }, text));
  root.append(make("div", {}, controls, host, readout, !model.alone && legend, notes));

  const frame = await plot(host, { label: `${model.title}. ${model.numbers || "The numbers below have the values."}`, x: model.x, y: yAxis(), draw: painter(model, weights, state),
    hover: (find) => mark(find && nearest(find)),
    click: (find) => {
      const found = nearest(find);
      if (found && model.open) model.open(found.p);
      else if (found && !model.alone) keep(found.line.key);
    },
    zoomed: (range) => {
      reset.hidden = !range;
      if (!range && ends) ends.forEach((e, i) => { e.value = model.x.choices.at(i ? -1 : 0)[0]; });
    } });
  for (const line of new Map(weights.main.map((l) => [l.key, l])).values()) if (!model.alone) offer(line);
  say(null, null);
  return frame.stop;
}
