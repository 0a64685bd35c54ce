/** Hysteresis: beta goes up through the fold and back, and planning goes on from where it was. */

import { actionValues } from "./sweeps.js";
import { fixedPoints } from "./fixed_points.js";

/** @typedef {import("./scene.js").Place} Place */

const STEPS = 60; // each way
const BEYOND = 0.4; // of the window, how far behind the fold it turns

/**
 * Where a loop begins, and the betas that it comes by; null where there is no fold to pass.
 * @param {Place} place @param {number} beta where it begins and ends, if that is between the folds
 */
export function loopOf(place, beta) {
  const { window, mdp, branch } = place;
  if (!window) return null;
  const start = beta > window.low && beta < window.high ? beta : window.middle;
  const top = window.high + BEYOND * (window.high - window.low);
  const up = Array.from({ length: STEPS }, (_, i) => start + ((i + 1) / STEPS) * (top - start));
  const down = [...up.slice(0, -1).reverse(), start];
  const [lowest] = fixedPoints(mdp, { kind: "boltzmann", parameter: start }, branch);
  return { start, from: actionValues(mdp, lowest.value), before: lowest.value, betas: [...up, ...down] };
}
