/**
 * Every fixed point of planning in the MDP of figure 1, and the folds where two of them meet.
 *
 * Let `Va` and `Vb` be the values of always taking a and always taking b. A fixed point V lies
 * between them, for it is the value of a policy: `V = Vb + s (Va - Vb)`, `s = 1 / (1 + e^-x)`. There
 * `V - Qb = (1 - discount pb)(V - Vb)` and `Qa - V = (1 - discount pa)(Va - V)`, so that the odds of
 * a are `e^(c + x)` with `c = log((1 - discount pb) / (1 - discount pa))`. Boltzmann's policy has the
 * odds `e^(beta D)`, `D = Qa - Qb`, so that the branch of fixed points is closed-form in x:
 *
 *     beta(x) = (c + x) / D(s)
 *
 * D is linear in s and, as a sum of two terms of one sign, never 0 between the ends. By V,
 * `beta' = N / D^2` with `N = L' D - L D'`, `L = c + x`; `N' = L'' D`, and L'' changes its sign in
 * the middle only. So N, positive at both ends, has at most one root on each side of x = 0: there are
 * two folds or none, and at most three fixed points. Each is found by bisection where beta(x) is
 * monotone. Mellowmax is a non-expansion and has one fixed point.
 */

import { logistic } from "./operators.js";
import { actionValues, pureValues, slope, sweep } from "./sweeps.js";

/** @typedef {import("./operators.js").Softmax} Softmax */
/** @typedef {import("./sweeps.js").MDP} MDP */
/** @typedef {import("./sweeps.js").FixedPoint} FixedPoint */
/** @typedef {{x: number, parameter: number, value: number}} BranchPoint */
/**
 * @typedef {{folds: BranchPoint[], at: (x: number) => BranchPoint, gap: (x: number) => number, shift: number}} Branch
 */

const FAR = 40; // e^-40 is nothing beside 1

/**
 * Boltzmann's branch; null where all policies have the same value, which is the fixed point.
 * @param {MDP} mdp @returns {Branch | null}
 */
export function branch(mdp) {
  const { a, b } = pureValues(mdp);
  if (Math.abs(a - b) <= 1e-14 * Math.max(Math.abs(a), Math.abs(b), 1e-300)) return null;
  const atA = actionValues(mdp, a);
  const atB = actionValues(mdp, b);
  const gapA = a - atA.qb; // D at either end, where the action's own value is V
  const gapB = atB.qa - b;
  const shift = Math.log1p(-mdp.discount * mdp.pb) - Math.log1p(-mdp.discount * mdp.pa);
  const gap = (/** @type {number} */ x) => gapA * logistic(x) + gapB * logistic(-x);
  const at = (/** @type {number} */ x) => ({
    x,
    parameter: (shift + x) / gap(x),
    value: b * logistic(-x) + a * logistic(x),
  });
  const sign = Math.sign(a - b);
  // The sign of N, freed of what is positive: it is that of d beta / dx times that of a - b.
  const turning = (/** @type {number} */ x) =>
    sign * (gap(x) - (shift + x) * (gapA - gapB) * logistic(x) * logistic(-x));
  const folds = [];
  if (turning(0) < 0) {
    folds.push(at(root(turning, -FAR, 0)), at(root(turning, 0, FAR)));
    folds.sort((one, other) => one.value - other.value);
  }
  return { folds, at, gap, shift };
}

/**
 * All fixed points, the lowest first.
 * @param {MDP} mdp @param {Softmax} softmax @param {Branch | null} [known] the branch, if it is known
 * @returns {FixedPoint[]}
 */
export function fixedPoints(mdp, softmax, known = branch(mdp)) {
  const values =
    softmax.kind === "mellowmax" || known === null
      ? [onlyValue(mdp, softmax)]
      : valuesOn(known, softmax.parameter);
  return values.map((v) => {
    const rate = slope(mdp, softmax, v);
    return { value: v, slope: rate, stable: Math.abs(rate) < 1 };
  });
}

/**
 * Where the branch has a parameter.
 * @param {Branch} known @param {number} beta
 */
function valuesOn(known, beta) {
  const excess = (/** @type {number} */ x) => beta * known.gap(x) - known.shift - x;
  const widest = Math.max(Math.abs(known.gap(-FAR)), Math.abs(known.gap(FAR)));
  const far = Math.abs(beta) * widest + Math.abs(known.shift) + 1;
  const turns = known.folds.map((fold) => fold.x).sort((one, other) => one - other);
  const edges = [-far, ...turns.filter((x) => Math.abs(x) < far), far];
  const values = [];
  for (let i = 0; i + 1 < edges.length; i++) {
    if (excess(edges[i]) * excess(edges[i + 1]) > 0) continue;
    values.push(known.at(root(excess, edges[i], edges[i + 1])).value);
  }
  return values.sort((one, other) => one - other);
}

/**
 * The fixed point of a map that brings values together.
 * @param {MDP} mdp @param {Softmax} softmax
 */
function onlyValue(mdp, softmax) {
  const { a, b } = pureValues(mdp);
  const change = (/** @type {number} */ v) => sweep(mdp, softmax, v) - v;
  return a === b ? a : root(change, Math.min(a, b), Math.max(a, b));
}

/** The root of a function with one change of sign, to the last digit. */
export function root(
  /** @type {(x: number) => number} */ f,
  /** @type {number} */ low,
  /** @type {number} */ high,
) {
  const rises = f(high) > f(low);
  for (let n = 0; n < 200; n++) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high) break;
    if (f(middle) > 0 === rises) high = middle;
    else low = middle;
  }
  return (low + high) / 2;
}
