/** The operators against the value of one action, the other held: Boltzmann's falls before it rises. */

import { boltzmann, logSumExp, mellowmax, resmax, sparsemax } from "./operators.js";

/** @typedef {import("./chart.js").Chart} Chart */

const GRAIN = 160;

/**
 * @param {Chart} chart @param {import("./chart.js").Ink} ink
 * @param {{beta: number, omega: number, held: number, widest: number, others: boolean}} what
 */
export function drawOperators(chart, ink, { beta, omega, held, widest, others }) {
  const [low, high] = [held - Math.min(7 / beta, widest), held + Math.min(3.5 / beta, widest / 2)];
  const xs = Array.from({ length: GRAIN + 1 }, (_, i) => low + (i / GRAIN) * (high - low));
  const middle = (/** @type {number} */ q) => (q + held) / 2;
  chart.begin([low, high], [middle(low), high], ink);
  chart.axes("Q(s₁, a)", `value of s₁, with Q(s₁, b) = ${held.toFixed(3)}`, { yTicks: 4 });
  /** @type {[string, (q: number) => number, {colour: string, width?: number, dash?: number[]}][]} */
  const curves = [
    ["max", (q) => Math.max(q, held), { colour: ink.text, width: 1.5, dash: [1, 4] }],
    ["mean", middle, { colour: ink.soft, width: 1.5, dash: [8, 4, 1, 4] }],
    ["Boltzmann", (q) => boltzmann(q, held, beta), { colour: ink.boltzmann, width: 2.5, dash: [9, 5] }],
    ["mellowmax", (q) => mellowmax(q, held, omega), { colour: ink.mellowmax, width: 2.5 }],
  ];
  if (others) {
    curves.push(
      ["log-sum-exp", (q) => logSumExp(q, held, beta), { colour: ink.sum, width: 2, dash: [12, 3] }],
      ["sparsemax", (q) => sparsemax(q, held, beta), { colour: ink.sparse, width: 2, dash: [5, 3] }],
      ["resmax", (q) => resmax(q, held, omega), { colour: ink.inverse, width: 2, dash: [2, 3] }],
    );
  }
  chart.inside(() => {
    for (const [, f, look] of curves) chart.line(xs.map((q) => [chart.x(q), chart.y(f(q))]), look);
    drawDip(chart, xs, curves[2][1], ink.boltzmann);
  });
  const spread = curves.map(([name, f, { colour }]) => ({ name, colour, py: chart.y(f(low + 0.02 * (high - low))) }));
  spread.sort((one, other) => one.py - other.py);
  let last = -Infinity;
  for (const { name, colour, py } of spread) {
    last = Math.max(py - 11, last + 15);
    chart.label(name, chart.frame.x + 8, last, { colour, bold: true });
  }
}

/**
 * Where the value falls while the action gets better.
 * @param {Chart} chart
 * @param {number[]} xs
 * @param {(q: number) => number} f
 * @param {string} colour
 */
function drawDip(chart, xs, f, colour) {
  const falls = xs.filter((q, i) => i && f(q) < f(xs[i - 1]) - 1e-6);
  if (falls.length < 3) return;
  chart.line(falls.map((q) => [chart.x(q), chart.y(f(q))]), { colour, width: 8, alpha: 0.25 });
  const { x, y, width, height } = chart.frame;
  const [px, py] = [x + width - 8, y + height - 16];
  const text = width > 380 ? "Boltzmann’s falls here, though a gets better" : "Boltzmann’s falls here";
  chart.label(text, px, py, { colour, align: "right" });
}
