/**
 * Two players with two actions each, who answer each other by a softmax: equilibria and branches.
 *
 * The row player takes up with the probability p, the column player left with q. Up is worth more
 * than down by a number that is linear in q, left more than right by one that is linear in p. So the
 * answers are `q = h(left(p))` and `p = h(up(q))`, with the softmax's probability h of the first of
 * two actions, and an equilibrium is a root of `h(up(h(left(p)))) - p`. It is stable if players who
 * answer each other again and again come back to it: if the slope of the answer to an answer is
 * between -1 and 1.
 */

import { policy } from "./operators.js";
import { root } from "./fixed_points.js";

/** @typedef {import("./operators.js").Softmax} Softmax */
/** The row player's payoff and the column player's, at up left, up right, down left, down right. */
/** @typedef {number[]} Payoffs */
/** @typedef {{p: number, q: number, values: [number, number], slope: number, stable: boolean}} Equilibrium */
/** @typedef {{from: [number, number], to: [number, number], stable: boolean}} Piece */

const CELLS = 1000; // in each of which one root at most is found
const NEAR = 1e-6; // of a probability, half of a difference quotient

/** How much more up is worth than down. @param {Payoffs} g @param {number} q */
const up = (g, q) => q * (g[0] - g[4]) + (1 - q) * (g[2] - g[6]);

/** How much more left is worth than right. @param {Payoffs} g @param {number} p */
const left = (g, p) => p * (g[1] - g[3]) + (1 - p) * (g[5] - g[7]);

/** The row player's answer to q. @param {Payoffs} g @param {Softmax} softmax @param {number} q */
export function rowAnswer(g, softmax, q) {
  return policy(softmax, up(g, q), 0);
}

/** The column player's answer to p. @param {Payoffs} g @param {Softmax} softmax @param {number} p */
export function columnAnswer(g, softmax, p) {
  return policy(softmax, left(g, p), 0);
}

/** How far the answer to the answer to p is above p. @param {Payoffs} g @param {Softmax} softmax @param {number} p */
function away(g, softmax, p) {
  return rowAnswer(g, softmax, columnAnswer(g, softmax, p)) - p;
}

/** Places from 0 to 1 that are close together next to both ends, where pure equilibria are. */
const places = Array.from({ length: CELLS + 1 }, (_, i) => (1 - Math.cos((Math.PI * i) / CELLS)) / 2);

/**
 * The equilibria, those with the least p first: all whose p lies in another cell.
 * @param {Payoffs} g @param {Softmax} softmax
 * @returns {Equilibrium[]}
 */
export function equilibria(g, softmax) {
  const f = (/** @type {number} */ p) => away(g, softmax, p);
  const found = [];
  let last = f(0);
  for (let i = 0; i < CELLS; i++) {
    const next = f(places[i + 1]);
    if (last === 0 || last * next < 0) found.push(last === 0 ? places[i] : root(f, places[i], places[i + 1]));
    last = next;
  }
  if (last === 0) found.push(1);
  return found.map((p) => equilibrium(g, softmax, p));
}

/** The slope of the answer to the answer. @param {Payoffs} g @param {Softmax} softmax @param {number} p */
function slopeAt(g, softmax, p) {
  const [low, high] = [Math.max(0, p - NEAR), Math.min(1, p + NEAR)];
  return (away(g, softmax, high) - away(g, softmax, low)) / (high - low) + 1;
}

/** @param {Payoffs} g @param {Softmax} softmax @param {number} p @returns {Equilibrium} */
function equilibrium(g, softmax, p) {
  const q = columnAnswer(g, softmax, p);
  const slope = slopeAt(g, softmax, p);
  const mean = (/** @type {number} */ k) =>
    p * (q * g[k] + (1 - q) * g[k + 2]) + (1 - p) * (q * g[k + 4] + (1 - q) * g[k + 6]);
  return { p, q, values: [mean(0), mean(1)], slope, stable: Math.abs(slope) < 1 };
}

/**
 * Where players end who answer each other in turn, from the row player's p on; the places on the way
 * are corners of a staircase between the two answers. It has not settled if it is still moving.
 * @param {Payoffs} g
 * @param {Softmax} softmax
 * @param {number} p
 * @param {number} [most] how often both answer
 */
export function answers(g, softmax, p, most = 400) {
  /** @type {[number, number][]} */
  const corners = [];
  let settled = false;
  for (let i = 0; i < most && !settled; i++) {
    const q = columnAnswer(g, softmax, p);
    const next = rowAnswer(g, softmax, q);
    corners.push([p, q], [next, q]);
    settled = Math.abs(next - p) < 1e-9;
    p = next;
  }
  return { corners, settled };
}

/**
 * The equilibria over the parameter: pieces of the lines on which the answer to the answer is p, one
 * or two in each small square of a grid that such a line passes.
 * @param {Payoffs} g
 * @param {Softmax["kind"]} kind
 * @param {number} most the largest parameter
 * @param {number} columns
 * @param {number} rows
 * @returns {Piece[]}
 */
export function branches(g, kind, most, columns, rows) {
  const ps = Array.from({ length: rows + 1 }, (_, i) => (1 - Math.cos((Math.PI * i) / rows)) / 2);
  const at = (/** @type {number} */ parameter) => {
    const softmax = { kind, parameter };
    return ps.map((p) => away(g, softmax, p));
  };
  const pieces = /** @type {Piece[]} */ ([]);
  let old = at(0);
  for (let k = 0; k < columns; k++) {
    const xs = /** @type {[number, number]} */ ([(most * k) / columns, (most * (k + 1)) / columns]);
    const now = at(xs[1]);
    for (let i = 0; i < rows; i++) {
      for (const [from, to] of piecesOf([old[i], now[i], now[i + 1], old[i + 1]], xs, [ps[i], ps[i + 1]])) {
        const slope = slopeAt(g, { kind, parameter: (from[0] + to[0]) / 2 }, (from[1] + to[1]) / 2);
        pieces.push({ from, to, stable: Math.abs(slope) < 1 });
      }
    }
    old = now;
  }
  return pieces;
}

/**
 * The pieces within a square, from what the function is at its corners, anticlockwise from the least.
 * @param {number[]} f
 * @param {[number, number]} xs
 * @param {[number, number]} ps
 * @returns {[number, number][][]}
 */
function piecesOf(f, [left, right], [low, high]) {
  const corners = /** @type {[number, number][]} */ ([[left, low], [right, low], [right, high], [left, high]]);
  const ends = /** @type {[number, number][]} */ ([]);
  for (let i = 0; i < 4; i++) {
    const j = (i + 1) % 4;
    if (f[i] > 0 === f[j] > 0) continue;
    const t = f[i] / (f[i] - f[j]);
    ends.push([corners[i][0] + t * (corners[j][0] - corners[i][0]), corners[i][1] + t * (corners[j][1] - corners[i][1])]);
  }
  return ends.length === 4 ? [ends.slice(0, 2), ends.slice(2)] : ends.length ? [ends] : [];
}
