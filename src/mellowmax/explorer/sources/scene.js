/** What there is to see of one operator: its fixed points, and where sweeps from the start end. */

import { branch, fixedPoints } from "./fixed_points.js";
import { actionValues, basins, pureValues, trajectory } from "./sweeps.js";
import { value } from "./operators.js";
import { windowOf } from "./broken_mdp.js";

/** @typedef {import("./operators.js").Softmax} Softmax */
/** @typedef {import("./sweeps.js").MDP} MDP */
/** @typedef {import("./sweeps.js").Pair} Pair */
/** @typedef {import("./sweeps.js").FixedPoint} FixedPoint */
/** @typedef {import("./sweeps.js").Trajectory} Trajectory */
/** @typedef {[number, number]} Range */
/** @typedef {{low: number, high: number, middle: number, width: number}} Window */
/**
 * @typedef {object} Place What does not change with the parameter.
 * @property {MDP} mdp
 * @property {import("./fixed_points.js").Branch | null} branch Boltzmann's.
 * @property {Window | null} window Between its folds there are three fixed points.
 * @property {Range} values From the lowest to the highest value of a policy.
 * @property {Range} plane The range of both axes of the plane.
 * @property {number} most The largest parameter of the slider.
 */
/**
 * @typedef {object} Scene
 * @property {Place} place
 * @property {Softmax} softmax
 * @property {FixedPoint[]} points
 * @property {(v: number) => number} basin
 * @property {number} end The place in `points` at which sweeps from the start end; -1 for none.
 * @property {Trajectory} path
 * @property {Pair} from
 */

/** @param {MDP} mdp @returns {Place} */
export function placeOf(mdp) {
  const known = branch(mdp);
  const { a, b } = pureValues(mdp);
  const low = Math.min(a, b);
  const high = Math.max(a, b);
  const ends = [actionValues(mdp, low), actionValues(mdp, high)].flatMap(({ qa, qb }) => [qa, qb]);
  const width = Math.max(...ends) - Math.min(...ends) || Math.max(Math.abs(high), 1) / 2;
  /** @type {Range} */
  const plane = [Math.min(...ends) - 0.16 * width, Math.max(...ends) + 0.12 * width];
  const found = windowOf(known);
  const wanted = found ? 1.6 * found.high : 8 / (width / 2);
  return {
    mdp,
    branch: known,
    window: found,
    values: [low - 0.04 * width, high + 0.04 * width],
    plane,
    most: roundUp(Math.min(Math.max(wanted, 1), 1000)),
  };
}

/** @param {Place} place @param {Softmax} softmax @param {Pair} from @returns {Scene} */
export function sceneOf(place, softmax, from) {
  const points = fixedPoints(place.mdp, softmax, place.branch);
  const basin = basins(place.mdp, softmax, points);
  const end = basin(value(softmax, from.qa, from.qb));
  return { place, softmax, points, basin, end, path: trajectory(place.mdp, softmax, from), from };
}

/**
 * Where sweeps start unless the reader says otherwise: low, in a corner of the plane.
 * @param {Place} place
 * @returns {Pair}
 */
export function cornerOf({ plane: [low, high] }) {
  const q = low + 0.05 * (high - low);
  return { qa: q, qb: q };
}

/**
 * The pair of action values where sweeps from the start end.
 * @param {Scene} scene @returns {Pair}
 */
export function endOf(scene) {
  const { points, end, path, place } = scene;
  const last = end < 0 ? path.values[path.values.length - 1] : points[end].value;
  return actionValues(place.mdp, last);
}

/** The range of beta that is shown: all of it, or the window between the folds and as much again. */
export function shownBetas(
  /** @type {Place} */ place,
  /** @type {boolean} */ magnified,
  /** @type {number} */ beta,
) {
  /** @type {Range} */
  let range = [0, place.most];
  if (magnified && place.window) {
    const { low, high, middle } = place.window;
    const half = Math.min(2.65 * (high - low), 0.98 * middle);
    range = [middle - half, middle + half];
  }
  return /** @type {Range} */ ([Math.min(range[0], beta), Math.max(range[1], beta)]);
}

/** @param {number} x */
function roundUp(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((m) => m * power).find((one) => one >= x * 0.999) ?? 10 * power;
}
