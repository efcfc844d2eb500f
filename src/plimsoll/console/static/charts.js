// Charts over time as SVG, made of elements like everything else here: no inline style, no script from elsewhere.

import { el } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 900;
const HEIGHT = 260;
const LEFT = 60;
const BOTTOM = 24;
const TOP = 8;
const STEPS = 4;

/** @typedef {{name: string, values: (number | null)[], kind?: string, steps?: boolean}} Series */

/**
 * @param {string} tag @param {Record<string, string | number>} attributes @param {...(Node | string)} children
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/**
 * Lines over one time axis, with a legend and the values under the pointer.
 * @param {{title: string, at: string[], series: Series[], unit?: string, stacked?: boolean}} chart
 */
export function lineChart(chart) {
  const times = chart.at.map((moment) => new Date(moment).getTime());
  const drawn = chart.stacked ? stack(chart.series) : chart.series;
  const top = niceTop(Math.max(0, ...drawn.flatMap((series) => series.values.map((value) => value ?? 0))));
  const span = Math.max(1, times[times.length - 1] - times[0]);
  const x = (/** @type {number} */ time) => LEFT + ((time - times[0]) / span) * (WIDTH - LEFT - 8);
  const y = (/** @type {number} */ value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": chart.title });
  picture.append(...axes(times, top, x, y));
  for (const [index, series] of drawn.entries()) {
    picture.append(svg("path", { class: `line ${series.kind ?? `line-${index % 6}`}`, d: path(series, times, x, y) }));
  }
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, x1: -10, x2: -10 });
  picture.append(cursor);
  const values = el("p", { class: "values quiet", "aria-live": "off" }, describe(chart, times.length - 1));
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const wanted = times[0] + ((((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - 8)) * span;
    const nearest = findNearest(times, wanted);
    cursor.setAttribute("x1", String(x(times[nearest])));
    cursor.setAttribute("x2", String(x(times[nearest])));
    values.textContent = describe(chart, nearest);
  });
  return el("figure", { class: "figure" }, el("figcaption", {}, chart.title), el("div", { class: "chart-scroll" }, picture), legend(drawn), values);
}

/** A small line without axes. @param {number[]} values @param {string} title */
export function sparkline(values, title) {
  const top = Math.max(...values, 1e-9);
  const step = 120 / Math.max(1, values.length - 1);
  const points = values.map((value, index) => `${(index * step).toFixed(1)},${(28 - (value / top) * 26).toFixed(1)}`).join(" ");
  return svg("svg", { viewBox: "0 0 120 30", class: "spark", role: "img", "aria-label": title }, svg("polyline", { class: "line line-0", points }));
}

/** Each series on top of those before it. @param {Series[]} series @returns {Series[]} */
function stack(series) {
  /** @type {number[]} */
  const sums = [];
  return series.map((layer) => ({
    ...layer,
    values: layer.values.map((value, index) => (sums[index] = (sums[index] ?? 0) + (value ?? 0))),
  }));
}

/** @param {number} highest */
export function niceTop(highest) {
  if (!(highest > 0) || !Number.isFinite(highest)) return 1;
  const power = 10 ** Math.floor(Math.log10(highest));
  for (const factor of [1, 1.5, 2, 3, 4, 5, 8, 10]) if (factor * power >= highest) return factor * power;
  return 10 * power;
}

/** @param {number[]} times @param {number} top @param {(t: number) => number} x @param {(v: number) => number} y */
function axes(times, top, x, y) {
  const lines = [];
  for (let step = 0; step <= STEPS; step++) {
    const value = (top * step) / STEPS;
    lines.push(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }));
    lines.push(svg("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, Number(value.toPrecision(3)).toString()));
  }
  const last = times[times.length - 1];
  for (const [time, anchor] of /** @type {[number, string][]} */ ([[times[0], "start"], [(times[0] + last) / 2, "middle"], [last, "end"]])) {
    const text = new Date(time).toISOString().slice(last - times[0] > 86_400_000 ? 5 : 11, 19).replace("T", " ");
    lines.push(svg("text", { class: "tick", x: x(time), y: HEIGHT - 6, "text-anchor": anchor }, text));
  }
  return lines;
}

/** @param {Series} series @param {number[]} times @param {(t: number) => number} x @param {(v: number) => number} y */
function path(series, times, x, y) {
  let text = "";
  let last = null;
  for (const [index, value] of series.values.entries()) {
    if (value === null) {
      last = null;
      continue;
    }
    if (last === null) text += `M${x(times[index]).toFixed(1)},${y(value).toFixed(1)}`;
    else text += (series.steps ? `H${x(times[index]).toFixed(1)}` : "") + `L${x(times[index]).toFixed(1)},${y(value).toFixed(1)}`;
    last = value;
  }
  return text;
}

/** @param {Series[]} series */
function legend(series) {
  return el(
    "p",
    { class: "legend" },
    ...series.map((shown, index) => el("span", {}, el("i", { class: `key ${shown.kind ?? `key-${index % 6}`}` }), shown.name)),
  );
}

/** @param {{at: string[], series: Series[], unit?: string}} chart @param {number} index */
function describe(chart, index) {
  if (index < 0) return "";
  const values = chart.series.map((series) => `${series.name} ${series.values[index] === null ? "–" : Number((series.values[index] ?? 0).toPrecision(4))}`);
  return `${new Date(chart.at[index]).toISOString().slice(0, 19).replace("T", " ")} UTC: ${values.join(", ")}${chart.unit ? ` (${chart.unit})` : ""}`;
}

/** @param {number[]} times @param {number} wanted */
function findNearest(times, wanted) {
  let best = 0;
  for (const [index, time] of times.entries()) if (Math.abs(time - wanted) < Math.abs(times[best] - wanted)) best = index;
  return best;
}
