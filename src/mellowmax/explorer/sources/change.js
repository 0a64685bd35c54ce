/** T(V) - V: what a sweep changes. It crosses 0 at the fixed points; a cobweb would look flat. */

import { sweep } from "./sweeps.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./chart.js").Chart} Chart */

const GRAIN = 140;

/** @param {Chart} chart @param {Scene} scene @param {import("./chart.js").Ink} ink @param {number} lit */
export function drawChange(chart, scene, ink, lit) {
  const { place, softmax, points } = scene;
  const [low, high] = place.values;
  const values = Array.from({ length: GRAIN + 1 }, (_, i) => low + (i / GRAIN) * (high - low));
  const changes = values.map((v) => sweep(place.mdp, softmax, v) - v);
  const size = heightOf(scene, values, changes);
  chart.begin([low, high], [-size, size], ink);
  chart.axes("V(s₁)", "T(V) − V", { yTicks: 3 });
  const colour = ink[softmax.kind];
  const zero = chart.y(0);
  chart.inside(() => {
    const { context } = chart;
    context.beginPath();
    context.moveTo(chart.x(low), zero);
    values.forEach((v, i) => context.lineTo(chart.x(v), clipped(chart, changes[i])));
    context.lineTo(chart.x(high), zero);
    context.globalAlpha = 0.14;
    context.fillStyle = colour;
    context.fill();
    context.globalAlpha = 1;
    chart.line(
      values.map((v, i) => [chart.x(v), clipped(chart, changes[i])]),
      { colour, width: 2.25 },
    );
    chart.line([[chart.x(low), zero], [chart.x(high), zero]], { colour: ink.text, width: 1 });
    const edges = [low, ...points.map((point) => point.value), high];
    for (let i = 0; i + 1 < edges.length; i++) {
      const middle = (edges[i] + edges[i + 1]) / 2;
      if (chart.x(edges[i + 1]) - chart.x(edges[i]) < 36) continue;
      const way = Math.sign(sweep(place.mdp, softmax, middle) - middle);
      const px = chart.x(middle);
      chart.line([[px - way * 9, zero], [px + way * 9, zero]], { colour: ink.text, width: 2 });
      chart.line(
        [[px + way * 4, zero - 4], [px + way * 9, zero], [px + way * 4, zero + 4]],
        { colour: ink.text, width: 2 },
      );
    }
  });
  points.forEach((point, i) => {
    if (i === scene.end) chart.ring(chart.x(point.value), zero, colour);
    chart.dot(chart.x(point.value), zero, { colour, stable: point.stable, lit: i === lit });
  });
}

/** @param {Chart} chart @param {number} change */
function clipped(chart, change) {
  const { y, height } = chart.frame;
  return Math.min(Math.max(chart.y(change), y - 4), y + height + 4);
}

/** How far the axis reaches: to the largest change, or, next to folds, to what can be seen there. */
function heightOf(
  /** @type {Scene} */ { place, softmax },
  /** @type {number[]} */ values,
  /** @type {number[]} */ changes,
) {
  const sizes = changes.map(Math.abs);
  const largest = Math.max(...sizes) || 1e-6;
  if (softmax.kind === "mellowmax" || !place.window || !place.branch) return largest;
  const [from, to] = place.branch.folds.map((fold) => fold.value);
  const margin = (to - from) / 2;
  const near = sizes.filter((_, i) => values[i] > from - margin && values[i] < to + margin);
  return Math.min(largest, 1.5 * Math.max(...near, 1e-9));
}
