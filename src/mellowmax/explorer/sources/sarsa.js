/**
 * SARSA in the MDP of figure 1 (Algorithm 1 of the paper): in s1 an action is drawn from the policy,
 * and its value moves a step towards the reward plus the discounted value of the next action drawn.
 */

import { policy, value } from "./operators.js";
import { generator } from "./random.js";

/** @typedef {import("./operators.js").Softmax} Softmax */
/** @typedef {import("./sweeps.js").MDP} MDP */
/** @typedef {import("./sweeps.js").Pair} Pair */

const KEPT = 400; // pairs of the trail

/** One run: its values, and the share of its steps that it has spent on each side of a value. */
export class Sarsa {
  /** @param {Pair} from @param {number} seed */
  constructor(from, seed) {
    this.qa = from.qa;
    this.qb = from.qb;
    this.steps = 0;
    this.below = 0;
    /** @type {Pair[]} */
    this.trail = [];
    this.random = generator(seed);
    /** @type {boolean | null} */
    this.takesA = null;
  }

  /**
   * Take many steps; in between the policy follows the values.
   * @param {MDP} mdp @param {Softmax} softmax @param {number} rate @param {number} count
   * @param {number} middle steps with a value below this are counted
   */
  run(mdp, softmax, rate, count, middle) {
    const { ra, pa, rb, pb, discount } = mdp;
    const every = Math.max(1, Math.floor(count / 20));
    for (let n = 0; n < count; n++) {
      const takesA = this.takesA ?? this.draw(softmax);
      const stays = this.random() < (takesA ? pa : pb);
      const nextA = this.draw(softmax);
      const next = stays ? discount * (nextA ? this.qa : this.qb) : 0;
      if (takesA) this.qa += rate * (ra + next - this.qa);
      else this.qb += rate * (rb + next - this.qb);
      this.takesA = stays ? nextA : null; // an episode begins with a draw of its own
      if (value(softmax, this.qa, this.qb) < middle) this.below += 1;
      if (n % every === 0) this.trail.push({ qa: this.qa, qb: this.qb });
    }
    this.steps += count;
    this.trail.splice(0, this.trail.length - KEPT);
  }

  /**
   * Is the action that the policy draws a?
   * @param {Softmax} softmax
   */
  draw(softmax) {
    return this.random() < policy(softmax, this.qa, this.qb);
  }
}
