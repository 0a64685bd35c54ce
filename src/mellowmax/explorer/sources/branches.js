/** The fixed points over the parameter: Boltzmann's branch with its folds, mellowmax's one value. */

import { fixedPoints } from "./fixed_points.js";
import { shownBetas } from "./scene.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./chart.js").Chart} Chart */
/** @typedef {{parameter: number, value: number}} Mark */

const GRAIN = 160; // points of a branch
const OMEGAS = 60;

/**
 * @param {Chart} chart
 * @param {Scene} scene
 * @param {import("./chart.js").Ink} ink
 * @param {{lit: number, magnified: boolean, trail: Mark[]}} look
 */
export function drawBranches(chart, scene, ink, { lit, magnified, trail }) {
  const { place, softmax } = scene;
  const { kind, parameter } = softmax;
  const colour = ink[kind];
  const boltzmann = kind === "boltzmann";
  const xs = boltzmann
    ? shownBetas(place, magnified, parameter)
    : /** @type {[number, number]} */ ([0, Math.max(place.most, parameter)]);
  chart.begin(xs, place.values, ink);
  if (boltzmann && place.window) drawWindow(chart, place.window);
  chart.axes(boltzmann ? "β" : "ω", "V(s₁)", { yTicks: 4 });
  chart.inside(() => {
    if (boltzmann) drawBranch(chart, scene, colour);
    else drawOnly(chart, scene, colour);
    drawTrail(chart, trail, ink);
  });
  const px = chart.x(parameter);
  const { y, height } = chart.frame;
  chart.line([[px, y - 6], [px, y + height]], { colour: ink.text, width: 1.5 });
  drawGrip(chart, px, `${boltzmann ? "β" : "ω"} ${parameter.toFixed(2)}`);
  scene.points.forEach((point, i) => {
    const py = chart.y(point.value);
    if (i === scene.end) chart.ring(px, py, colour);
    chart.dot(px, py, { colour, stable: point.stable, lit: i === lit });
  });
}

/**
 * What the parameter is dragged by, with its value.
 * @param {Chart} chart
 * @param {number} px
 * @param {string} text
 */
function drawGrip(chart, px, text) {
  const { context, ink } = chart;
  const { x, y, width } = chart.frame;
  const half = context.measureText(text).width / 2 + 8;
  const middle = Math.min(Math.max(px, x + half + 8), x + width - half + 8);
  context.fillStyle = ink.text;
  context.beginPath();
  context.roundRect(middle - half, y - 22, 2 * half, 18, 9);
  context.fill();
  context.fillStyle = ink.card;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, middle, y - 12.5);
}

/**
 * The window between the folds, in which there are three fixed points.
 * @param {Chart} chart
 * @param {import("./scene.js").Window} window
 */
function drawWindow(chart, { low, high }) {
  const { context, ink } = chart;
  const { y, height } = chart.frame;
  const [left, right] = [chart.x(low), chart.x(high)];
  context.fillStyle = ink.window;
  context.fillRect(left, y, right - left, height);
  if (right - left < 110) return;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = ink.soft;
  context.fillText("three fixed points", (left + right) / 2, y + height - 11);
}

/** @param {Chart} chart @param {Scene} scene @param {string} colour */
function drawBranch(chart, scene, colour) {
  const { branch } = scene.place;
  if (!branch) {
    const py = chart.y(scene.points[0].value);
    chart.line([[chart.x(chart.xs[0]), py], [chart.x(chart.xs[1]), py]], { colour, width: 2.5 });
    return;
  }
  const turns = branch.folds.map((fold) => fold.x).sort((one, other) => one - other);
  const edges = [-16, ...turns, 16];
  for (let k = 0; k + 1 < edges.length; k++) {
    /** @type {[number, number][]} */
    const points = [];
    for (let i = 0; i <= GRAIN; i++) {
      const t = (1 - Math.cos((Math.PI * i) / GRAIN)) / 2; // closer together next to the folds
      const { parameter, value } = branch.at(edges[k] + t * (edges[k + 1] - edges[k]));
      points.push([chart.x(parameter), chart.y(value)]);
    }
    const middle = edges.length === 4 && k === 1; // what lies between the folds repels
    chart.line(points, { colour, width: middle ? 2 : 2.75, dash: middle ? [3, 6] : [] });
  }
  for (const fold of branch.folds) {
    const [px, py] = [chart.x(fold.parameter), chart.y(fold.value)];
    chart.line([[px - 4, py - 4], [px + 4, py + 4]], { colour: chart.ink.text, width: 1.5 });
    chart.line([[px - 4, py + 4], [px + 4, py - 4]], { colour: chart.ink.text, width: 1.5 });
    const right = fold.parameter > (scene.place.window?.middle ?? 0);
    chart.label(`fold ${fold.parameter.toFixed(2)}`, px + (right ? 10 : -10), py + (right ? 12 : -12), {
      align: right ? "left" : "right",
    });
  }
}

/** @param {Chart} chart @param {Scene} scene @param {string} colour */
function drawOnly(chart, scene, colour) {
  const { mdp, branch } = scene.place;
  const [low, high] = chart.xs;
  /** @type {[number, number][]} */
  const points = [];
  for (let i = 0; i <= OMEGAS; i++) {
    const parameter = low + (i / OMEGAS) * (high - low);
    const [point] = fixedPoints(mdp, { kind: "mellowmax", parameter }, branch);
    points.push([chart.x(parameter), chart.y(point.value)]);
  }
  chart.line(points, { colour, width: 2.75 });
}

/**
 * Where planning has been while beta turned, with arrows.
 * @param {Chart} chart
 * @param {Mark[]} trail
 * @param {import("./chart.js").Ink} ink
 */
function drawTrail(chart, trail, ink) {
  if (trail.length < 2) return;
  const points = trail.map(({ parameter, value }) => /** @type {[number, number]} */ ([chart.x(parameter), chart.y(value)]));
  chart.line(points, { colour: ink.text, width: 1.5, alpha: 0.8 });
  let since = 40;
  for (let i = 1; i < points.length; i++) {
    const [dx, dy] = [points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]];
    const size = Math.hypot(dx, dy);
    since += size;
    if (since < 70 || size < 0.5) continue;
    since = 0;
    const [ux, uy] = [dx / size, dy / size];
    const [px, py] = [(points[i][0] + points[i - 1][0]) / 2, (points[i][1] + points[i - 1][1]) / 2];
    const wing = (/** @type {number} */ s) =>
      /** @type {[number, number]} */ ([px - 5 * ux + s * 4 * uy, py - 5 * uy - s * 4 * ux]);
    chart.line([wing(1), [px + 3 * ux, py + 3 * uy], wing(-1)], { colour: ink.text, width: 2 });
  }
}
