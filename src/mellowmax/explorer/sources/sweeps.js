/**
 * The MDP of figure 1 and what sweeps of planning do in it.
 *
 * In s1 an action earns its reward and stays in s1 with its probability; else the episode ends. So
 * all action values follow from one number, the value of s1, and a sweep is a map of that number:
 * `T(V) = f(Q(V))`, `Q_i(V) = r_i + discount * p_i * V`. After one sweep the pair of action values
 * lies on the line of the `Q(V)`, wherever it was before.
 */

import { gradient, value } from "./operators.js";

/** @typedef {import("./operators.js").Softmax} Softmax */
/** @typedef {{ra: number, pa: number, rb: number, pb: number, discount: number}} MDP */
/** @typedef {{value: number, slope: number, stable: boolean}} FixedPoint */
/** @typedef {{qa: number, qb: number}} Pair */
/** @typedef {{values: number[], sweeps: number, settled: boolean}} Trajectory */

/**
 * The MDP that the library fits to figure 4; rounded, it is the one of figure 1.
 * @type {MDP}
 */
export const PAPER = { ra: 0.12211, pa: 0.65867, rb: 0.03284, pb: 0.99075, discount: 0.98 };

/** Sweeps have settled when one changes the value by less than this. */
export const SETTLED = 1e-10;
const MOST_SWEEPS = 20000;

/**
 * The action values that follow from the value of s1.
 * @param {MDP} mdp @param {number} v @returns {Pair}
 */
export function actionValues(mdp, v) {
  return { qa: mdp.ra + mdp.discount * mdp.pa * v, qb: mdp.rb + mdp.discount * mdp.pb * v };
}

/**
 * The value of always taking a, and of always taking b.
 * @param {MDP} mdp
 */
export function pureValues(mdp) {
  return {
    a: mdp.ra / (1 - mdp.discount * mdp.pa),
    b: mdp.rb / (1 - mdp.discount * mdp.pb),
  };
}

/**
 * `T(V)`.
 * @param {MDP} mdp @param {Softmax} softmax @param {number} v
 */
export function sweep(mdp, softmax, v) {
  const { qa, qb } = actionValues(mdp, v);
  return value(softmax, qa, qb);
}

/**
 * `T'(V)`: below 1 where sweeps nearby come nearer.
 * @param {MDP} mdp
 * @param {Softmax} softmax
 * @param {number} v
 */
export function slope(mdp, softmax, v) {
  const { qa, qb } = actionValues(mdp, v);
  const [byA, byB] = gradient(softmax, qa, qb);
  return mdp.discount * (byA * mdp.pa + byB * mdp.pb);
}

/**
 * The values of s1 that sweeps come by from a pair of action values.
 * @param {MDP} mdp @param {Softmax} softmax @param {Pair} from @param {number} [most]
 * @returns {Trajectory}
 */
export function trajectory(mdp, softmax, from, most = MOST_SWEEPS) {
  const values = [value(softmax, from.qa, from.qb)];
  for (let n = 0; n < most; n++) {
    const v = values[n];
    const next = sweep(mdp, softmax, v);
    values.push(next);
    if (Math.abs(next - v) < SETTLED) return { values, sweeps: n + 1, settled: true };
  }
  return { values, sweeps: most, settled: false };
}

/**
 * From the value of s1 to the stable fixed point that sweeps end at, as its place in the list; -1 for
 * none that they reach.
 *
 * Where T rises all the way from a value to a stable fixed point, with no other fixed point between
 * them, sweeps go there without passing it. T does not rise everywhere, so other values are swept
 * until they come to such a place.
 * @param {MDP} mdp @param {Softmax} softmax @param {FixedPoint[]} points
 * @returns {(v: number) => number}
 */
export function basins(mdp, softmax, points) {
  const stable = points.flatMap((point, place) => (point.stable ? [place] : []));
  if (stable.length === 1 && points.length === 1) return () => stable[0];
  const { a, b } = pureValues(mdp);
  const low = Math.min(a, b);
  const high = Math.max(a, b);
  const reaches = stable.map((place) => reach(mdp, softmax, points, place, low, high));
  return (v) => {
    for (let n = 0; n < 1000; n++) {
      for (let i = 0; i < stable.length; i++) {
        if (v > reaches[i][0] && v < reaches[i][1]) return stable[i];
      }
      v = sweep(mdp, softmax, v);
    }
    return -1;
  };
}

/** The interval about a stable fixed point on which T rises, up to its neighbours. */
function reach(
  /** @type {MDP} */ mdp,
  /** @type {Softmax} */ softmax,
  /** @type {FixedPoint[]} */ points,
  /** @type {number} */ place,
  /** @type {number} */ low,
  /** @type {number} */ high,
) {
  const beyond = (high - low) * 0.5;
  const ends = [points[place - 1]?.value ?? low - beyond, points[place + 1]?.value ?? high + beyond];
  return ends.map((end) => {
    let from = points[place].value;
    const step = (end - from) / 64;
    for (let n = 0; n < 64; n++) {
      if (slope(mdp, softmax, from + step) <= 0) return from;
      from += step;
    }
    return end;
  });
}
