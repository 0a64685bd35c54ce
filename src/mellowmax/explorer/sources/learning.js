/** SARSA that runs on the page, one run for each operator, with its learning rate and speed. */

import { Sarsa } from "./sarsa.js";
import { learnerWords } from "./words.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./twin.js").Twin} Twin */

const AT_ONCE = 200000; // steps, where nothing may move
const SEEDS = { boltzmann: 1, mellowmax: 2 };

export class Learning {
  /**
   * @param {{twins: Twin[], state: () => State, start: () => import("./sweeps.js").Pair, still: () => boolean, change: (part: Partial<State>) => void, done: (gesture: string) => void}} app
   */
  constructor(app) {
    this.app = app;
    const find = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
    this.button = find("learn");
    this.rate = find("rate");
    this.speed = find("speed");
    this.words = find("learned");
    this.find = find;
    /** @type {{[kind: string]: Sarsa}} */ this.learners = {};
    this.frame = 0;
    this.time = 0;
    this.button.addEventListener("click", () => {
      app.change({ learns: !app.state().learns });
      app.done("learn");
    });
    this.rate.addEventListener("input", () => app.change({ rate: round(10 ** Number(this.rate.value)) }));
    this.speed.addEventListener("input", () => app.change({ speed: round(10 ** Number(this.speed.value)) }));
    for (const slider of [this.rate, this.speed]) slider.addEventListener("change", () => app.done(slider.id));
    find("forget").addEventListener("click", () => this.begin());
  }

  /** Begin again from the start of the sweeps. */
  begin() {
    const { twins, state, start } = this.app;
    this.learners = Object.fromEntries(twins.map(({ kind }) => [kind, new Sarsa(start(), SEEDS[kind])]));
    if (this.app.still() && state().learns) this.advance(AT_ONCE);
    this.show();
  }

  /** As the state says: running or not, with its numbers. */
  follow() {
    const { state, still } = this.app;
    const { learns, rate, speed } = state();
    this.button.textContent = learns ? (still() ? "Hide SARSA" : "Pause SARSA") : "Run SARSA";
    this.button.setAttribute("aria-pressed", String(learns));
    document.body.classList.toggle("learning", learns || this.words.textContent !== "");
    this.rate.value = String(Math.log10(rate));
    this.speed.value = String(Math.log10(speed));
    this.rate.setAttribute("aria-valuetext", String(rate));
    this.speed.setAttribute("aria-valuetext", `${speed} steps in a second`);
    this.find("rate-shown").textContent = String(rate);
    this.find("speed-shown").textContent = `${speed.toLocaleString("en")} steps/s`;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!learns && still() && this.learners.boltzmann) {
      this.stop();
      for (const twin of this.app.twins) twin.draw();
    }
    if (learns && !this.learners.boltzmann) this.begin();
    if (learns && !still()) {
      this.time = performance.now();
      this.frame = requestAnimationFrame(() => this.tick());
    }
    this.show();
  }

  tick() {
    const now = performance.now();
    const seconds = Math.min(0.05, (now - this.time) / 1000);
    this.time = now;
    this.advance(Math.max(1, Math.round(this.app.state().speed * seconds)));
    this.show();
    this.frame = requestAnimationFrame(() => this.tick());
  }

  /** @param {number} count */
  advance(count) {
    const { mdp, rate } = this.app.state();
    for (const { kind, scene } of this.app.twins) {
      if (!scene) continue;
      const middle = scene.points.length === 3 ? scene.points[1].value : -Infinity;
      this.learners[kind].run(mdp, scene.softmax, rate, count, middle);
    }
  }

  show() {
    const { learners } = this;
    if (!learners.boltzmann || !(this.app.state().learns || learners.boltzmann.steps)) return;
    const texts = [];
    for (const twin of this.app.twins) {
      if (!twin.scene) continue;
      twin.showLearner(learners[twin.kind]);
      texts.push(learnerWords(twin.scene, learners[twin.kind]));
    }
    this.words.textContent = `After ${learners.boltzmann.steps.toLocaleString("en")} steps. ${texts.join(" ")}`;
    document.body.classList.add("learning");
  }

  /** The values that were learned belong to another MDP. */
  stop() {
    this.learners = {};
    for (const twin of this.app.twins) twin.learner = null;
    this.words.textContent = "";
  }
}

/**
 * To two digits.
 * @param {number} x
 */
function round(x) {
  return Number(x.toPrecision(2));
}
