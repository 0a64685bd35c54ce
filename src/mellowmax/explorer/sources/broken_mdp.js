/** A random MDP in which Boltzmann's planning has several fixed points over a wide window. */

import { branch } from "./fixed_points.js";
import { generator } from "./random.js";

/** @typedef {import("./sweeps.js").MDP} MDP */

/** How wide a window must be, as a share of its middle. */
export const WIDE = 0.25;
const DRAWS = 20000;

/** The window of a branch: its folds' parameters and width; null where there is none within reach. */
export function windowOf(/** @type {import("./fixed_points.js").Branch | null} */ known) {
  if (!known || known.folds.length < 2) return null;
  const [one, other] = known.folds.map((fold) => fold.parameter);
  const low = Math.min(one, other);
  const high = Math.max(one, other);
  return low > 0 ? { low, high, middle: (low + high) / 2, width: (2 * (high - low)) / (low + high) } : null;
}

/**
 * The first that is found from a seed.
 * @param {number} seed @returns {MDP}
 */
export function brokenMDP(seed) {
  const random = generator(seed);
  const drawn = () => Math.round(1000 * random()) / 1000;
  let best = null;
  for (let n = 0; n < DRAWS; n++) {
    const mdp = { ra: drawn(), pa: drawn(), rb: drawn(), pb: drawn(), discount: 0.98 };
    const found = windowOf(branch(mdp));
    if (!found || found.high > 60 || found.low < 1) continue;
    if (found.width >= WIDE) return mdp;
    if (!best || found.width > best.width) best = { mdp, width: found.width };
  }
  if (!best) throw new Error(`no MDP with a window among ${DRAWS}`);
  return best.mdp;
}
