/** The plane of both action values: the field of updates, basins, drift, fixed points, the path. */

import { actionValues, sweep } from "./sweeps.js";
import { value } from "./operators.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./chart.js").Chart} Chart */

const COLUMNS = 17;
const ROWS = 13;
const GRAIN = [148, 112]; // cells in which the basins are told apart
/** @type {OffscreenCanvas | null} */
let small = null; // on which the basins are drawn, to be made larger
const CHEVRONS = 26;
const SHADES = 4;

/**
 * Where on the canvas a value of s1 is: the line that a sweep lands on.
 * @param {Chart} chart
 * @param {Scene} scene
 * @param {number} v
 * @returns {[number, number]}
 */
export function onLine(chart, scene, v) {
  const { qa, qb } = actionValues(scene.place.mdp, v);
  return [chart.x(qb), chart.y(qa)];
}

/**
 * All but what learns.
 * @param {Chart} chart
 * @param {Scene} scene
 * @param {import("./chart.js").Ink} ink
 * @param {number} lit
 */
export function drawPlane(chart, scene, ink, lit) {
  chart.begin(scene.place.plane, scene.place.plane, ink);
  const colour = ink[scene.softmax.kind];
  chart.inside(() => {
    drawBasins(chart, scene);
    drawField(chart, scene);
    drawLine(chart, scene);
    drawPath(chart, scene, colour);
  });
  chart.axes("Q(s₁, b)", "Q(s₁, a)", { grid: false });
  const { x, y, width, height } = chart.frame;
  chart.context.strokeStyle = ink.line;
  chart.context.strokeRect(x + 0.5, y + 0.5, width, height);
  scene.points.forEach((point, i) => {
    const [px, py] = onLine(chart, scene, point.value);
    if (i === scene.end) chart.ring(px, py, colour);
    chart.dot(px, py, { colour, stable: point.stable, lit: i === lit });
    const above = i > 0 || scene.points.length === 1;
    const offset = above ? [-14, -16] : [14, 17];
    chart.label(`V = ${point.value.toFixed(3)}`, px + offset[0], py + offset[1], {
      align: above ? "right" : "left",
      bold: i === scene.end,
    });
  });
}

/**
 * Two tints: where sweeps end low, and where they end high.
 * @param {Chart} chart @param {Scene} scene
 */
function drawBasins(chart, scene) {
  const stable = scene.points.flatMap((point, i) => (point.stable ? [i] : []));
  if (stable.length < 2) return;
  const { ink, context } = chart;
  const [low, high] = scene.place.plane;
  const [lower, higher] = [packed(ink.low), packed(ink.high)];
  const [columns, rows] = GRAIN;
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const { softmax, basin } = scene;
  for (let j = 0; j < rows; j++) {
    const qa = high - ((j + 0.5) / rows) * (high - low);
    for (let i = 0; i < columns; i++) {
      const qb = low + ((i + 0.5) / columns) * (high - low);
      pixels[j * columns + i] = basin(value(softmax, qa, qb)) === stable[0] ? lower : higher;
    }
  }
  small ??= new OffscreenCanvas(columns, rows);
  /** @type {OffscreenCanvasRenderingContext2D} */ (small.getContext("2d")).putImageData(image, 0, 0);
  const { x, y, width, height } = chart.frame;
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "low"; // a high one takes longer than all the rest
  context.drawImage(small, x, y, width, height);
}

/**
 * A colour as the number of a pixel.
 * @param {string} hex
 */
function packed(hex) {
  const bytes = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).concat(255);
  return new Uint32Array(new Uint8Array(bytes).buffer)[0];
}

/**
 * What one sweep changes, as arrows: the longer and the darker, the more.
 * @param {Chart} chart
 * @param {Scene} scene
 */
function drawField(chart, scene) {
  const { place, softmax } = scene;
  const { x, y, width, height } = chart.frame;
  const cell = Math.min(width / COLUMNS, height / ROWS);
  const paths = Array.from({ length: SHADES }, () => new Path2D());
  const longest = 0.7 * (place.plane[1] - place.plane[0]);
  for (let j = 0; j < ROWS; j++) {
    for (let i = 0; i < COLUMNS; i++) {
      const px = x + ((i + 0.5) / COLUMNS) * width;
      const py = y + ((j + 0.5) / ROWS) * height;
      const { x: qb, y: qa } = chart.at(px, py);
      const next = actionValues(place.mdp, value(softmax, qa, qb));
      const dx = chart.x(next.qb) - px;
      const dy = chart.y(next.qa) - py;
      const size = Math.hypot(dx, dy);
      if (size < 0.5) continue;
      const share = Math.min(1, Math.hypot(next.qa - qa, next.qb - qb) / longest);
      const length = cell * (0.25 + 0.6 * Math.sqrt(share));
      arrow(paths[Math.min(SHADES - 1, Math.floor(share * SHADES))], px, py, dx / size, dy / size, length);
    }
  }
  chart.context.save();
  chart.context.strokeStyle = chart.ink.soft;
  chart.context.lineWidth = 1; // with plain ends: hairlines are drawn several times as fast
  chart.context.lineCap = "butt";
  chart.context.lineJoin = "miter";
  paths.forEach((path, shade) => {
    chart.context.globalAlpha = 0.4 + (0.5 * shade) / (SHADES - 1);
    chart.context.stroke(path);
  });
  chart.context.restore();
}

/**
 * @param {Path2D} path
 * @param {number} px
 * @param {number} py
 * @param {number} ux
 * @param {number} uy
 * @param {number} length
 */
function arrow(path, px, py, ux, uy, length) {
  const [tx, ty] = [px + (ux * length) / 2, py + (uy * length) / 2];
  path.moveTo(px - (ux * length) / 2, py - (uy * length) / 2);
  path.lineTo(tx, ty);
  const head = Math.min(4.5, length / 2.5);
  path.moveTo(tx - head * (ux + 0.6 * uy), ty - head * (uy - 0.6 * ux));
  path.lineTo(tx, ty);
  path.lineTo(tx - head * (ux - 0.6 * uy), ty - head * (uy + 0.6 * ux));
}

/**
 * The line that a sweep lands on, and which way sweeps drift along it.
 * @param {Chart} chart
 * @param {Scene} scene
 */
function drawLine(chart, scene) {
  const { place, softmax } = scene;
  const [low, high] = place.values;
  const start = onLine(chart, scene, low);
  const stop = onLine(chart, scene, high);
  const colour = chart.ink[softmax.kind];
  chart.line([start, stop], { colour: chart.ink.card, width: 9, alpha: 0.9 });
  chart.line([start, stop], { colour, width: 1.5, alpha: 0.5 });
  const length = Math.hypot(stop[0] - start[0], stop[1] - start[1]);
  const [ux, uy] = [(stop[0] - start[0]) / length, (stop[1] - start[1]) / length];
  const path = new Path2D();
  for (let i = 0; i < CHEVRONS; i++) {
    const v = low + ((i + 0.5) / CHEVRONS) * (high - low);
    const way = Math.sign(sweep(place.mdp, softmax, v) - v);
    const [px, py] = onLine(chart, scene, v);
    path.moveTo(px - way * 3 * ux - 4 * uy, py - way * 3 * uy + 4 * ux);
    path.lineTo(px + way * 3 * ux, py + way * 3 * uy);
    path.lineTo(px - way * 3 * ux + 4 * uy, py - way * 3 * uy - 4 * ux);
  }
  chart.context.strokeStyle = colour;
  chart.context.lineWidth = 2;
  chart.context.stroke(path);
}

/**
 * From the start to the line, and along it.
 * @param {Chart} chart
 * @param {Scene} scene
 * @param {string} colour
 */
function drawPath(chart, scene, colour) {
  const { from, path } = scene;
  /** @type {[number, number]} */
  const start = [chart.x(from.qb), chart.y(from.qa)];
  const first = onLine(chart, scene, sweep(scene.place.mdp, scene.softmax, path.values[0]));
  const landing = onLine(chart, scene, path.values[0]);
  chart.line([start, landing], { colour: chart.ink.text, width: 1.75, dash: [2, 5] });
  chart.line([landing, first, onLine(chart, scene, path.values[path.values.length - 1])], {
    colour,
    width: 5,
    alpha: 0.35,
  });
  const [px, py] = start;
  chart.line([[px - 5, py], [px + 5, py]], { colour: chart.ink.text, width: 2 });
  chart.line([[px, py - 5], [px, py + 5]], { colour: chart.ink.text, width: 2 });
}

/**
 * Where a learner is and has been.
 * @param {Chart} chart @param {import("./sarsa.js").Sarsa} learner
 */
export function drawLearner(chart, learner) {
  const { text, card } = chart.ink;
  const place = (/** @type {import("./sweeps.js").Pair} */ { qa, qb }) =>
    /** @type {[number, number]} */ ([chart.x(qb), chart.y(qa)]);
  chart.inside(() => {
    const points = [...learner.trail, learner].map(place);
    chart.line(points, { colour: text, width: 1, alpha: 0.35 });
    const { x, y, width, height } = chart.frame;
    const [right, down] = place(learner); // it is shown at the edge if it is beyond
    const px = Math.min(Math.max(right, x + 6), x + width - 6);
    const py = Math.min(Math.max(down, y + 6), y + height - 6);
    chart.context.fillStyle = text;
    chart.context.strokeStyle = card;
    chart.context.lineWidth = 1.5;
    chart.context.fillRect(px - 5, py - 5, 10, 10);
    chart.context.strokeRect(px - 5, py - 5, 10, 10);
  });
}
