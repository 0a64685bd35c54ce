/**
 * What the reader has set, and its place in the address: what is not as in the beginning is named
 * there, so that a link shows it again. A gesture that has ended is one entry of the browser's
 * history: going back undoes it.
 */

import { PAPER } from "./sweeps.js";

/** @typedef {import("./sweeps.js").MDP} MDP */
/** @typedef {import("./sweeps.js").Pair} Pair */
/**
 * @typedef {object} State
 * @property {number} beta
 * @property {number} omega
 * @property {MDP} mdp
 * @property {Pair | null} from Where the reader lets sweeps start; null for a corner of the plane.
 * @property {Pair | null} at Where Boltzmann's planning was when beta or the MDP turned; it goes on from there.
 * @property {boolean} wide Are all betas shown, and not the window alone?
 * @property {boolean} loop Has beta been taken up through the fold and back?
 * @property {boolean} learns Does SARSA run?
 * @property {number} rate Its learning rate.
 * @property {number} speed Its steps in a second.
 * @property {number[]} taxi The place of omega in its list, and who is on board, in bits.
 * @property {number[]} game The softmax, its parameter, the row player's start, and the payoffs of both players.
 * @property {number[]} model The operator, the place of its parameter in its list, and the state.
 */

/**
 * The limits of what can be scrubbed.
 * @type {{[name in keyof MDP]: [number, number]}}
 */
export const LIMITS = { ra: [-1000, 1000], pa: [0, 1], rb: [-1000, 1000], pb: [0, 1], discount: [0, 0.999] };
/** The limits of a payoff. @type {[number, number]} */
export const PAYOFF_LIMITS = [-1000, 1000];
/** Games to begin with, each at a parameter where there is something to see. */
export const GAMES = [
  { name: "Stag hunt", game: [1, 14, 0.79, 4, 4, 0, 3, 3, 0, 3, 3] },
  { name: "Same or nothing", game: [1, 8, 0.6, 1, 1, 0, 0, 0, 0, 1, 1] },
  { name: "Matching pennies", game: [1, 12, 0.9, 3, -1, -1, 1, -1, 1, 1, -1] },
  { name: "A dilemma", game: [1, 6, 0.9, 3, 3, 0, 4, 4, 0, 1, 1] },
];
const MOST = 1000; // for beta and omega
const MDP_NAMES = /** @type {(keyof MDP)[]} */ (["ra", "pa", "rb", "pb", "discount"]);

/** @type {State} */
export const BEGINNING = {
  beta: 16.6,
  omega: 16.6,
  mdp: PAPER,
  from: null,
  at: null,
  wide: false,
  loop: false,
  learns: false,
  rate: 0.1,
  speed: 1000,
  taxi: [12, 0],
  game: GAMES[0].game,
  model: [0, 0, 0],
};

/** @param {number} x @param {number} low @param {number} high */
export function clip(x, low, high) {
  return Math.min(Math.max(x, low), high);
}

const digits = (/** @type {number} */ x) => String(Number(x.toPrecision(10)));
const pair = (/** @type {Pair | null} */ p) => (p ? `${digits(p.qb)},${digits(p.qa)}` : "");
/**
 * How each part is written; what is written alike is alike.
 * @type {{[name in keyof State]: (state: State) => string}}
 */
const WRITTEN = {
  beta: (state) => digits(state.beta),
  omega: (state) => digits(state.omega),
  mdp: (state) => MDP_NAMES.map((name) => digits(state.mdp[name])).join(","),
  from: (state) => pair(state.from),
  at: (state) => (state.loop ? "" : pair(state.at)), // a loop is taken again, and ends there
  wide: (state) => String(Number(state.wide)),
  loop: (state) => String(Number(state.loop)),
  learns: (state) => String(Number(state.learns)),
  rate: (state) => digits(state.rate),
  speed: (state) => digits(state.speed),
  taxi: (state) => state.taxi.join(","),
  game: (state) => state.game.map(digits).join(","),
  model: (state) => state.model.join(","),
};

/**
 * The part of the address behind the #.
 * @param {State} state @param {State} beginning
 */
export function format(state, beginning) {
  return Object.entries(WRITTEN)
    .filter(([, write]) => write(state) !== write(beginning))
    .map(([name, write]) => `${name}=${write(state)}`)
    .join("&");
}

/**
 * The state that an address names; what it does not name, or not well, is as in the beginning.
 * @param {string} text
 * @param {State} beginning
 * @returns {State}
 */
export function parse(text, beginning) {
  const given = new URLSearchParams(text.replace(/^#/, ""));
  const numbers = (/** @type {string} */ name, /** @type {number} */ count) => {
    const read = (given.get(name) ?? "").split(",").map((part) => (part.trim() ? Number(part) : NaN));
    return read.length === count && read.every(Number.isFinite) ? read : null;
  };
  const one = (/** @type {string} */ name, /** @type {number} */ low, /** @type {number} */ high, /** @type {number} */ otherwise) => {
    const read = numbers(name, 1);
    return read ? clip(read[0], low, high) : otherwise;
  };
  const flag = (/** @type {string} */ name, /** @type {boolean} */ otherwise) =>
    given.has(name) ? given.get(name) === "1" : otherwise;
  const twoOf = (/** @type {string} */ name) => {
    const read = numbers(name, 2);
    return read && { qb: clip(read[0], -1e6, 1e6), qa: clip(read[1], -1e6, 1e6) };
  };
  const list = (/** @type {string} */ name, /** @type {number[]} */ otherwise) =>
    numbers(name, otherwise.length)?.map((x) => Math.max(0, Math.round(x))) ?? otherwise;
  const game = numbers("game", beginning.game.length)?.map((x, i) => {
    if (i > 2) return clip(x, ...PAYOFF_LIMITS);
    return i === 1 ? clip(x, 0, MOST) : i ? clip(x, 0, 1) : Number(x > 0);
  });
  const mdp = numbers("mdp", MDP_NAMES.length);
  return {
    beta: one("beta", 0, MOST, beginning.beta),
    omega: one("omega", 0, MOST, beginning.omega),
    mdp: mdp
      ? /** @type {MDP} */ (Object.fromEntries(MDP_NAMES.map((name, i) => [name, clip(mdp[i], ...LIMITS[name])])))
      : beginning.mdp,
    from: twoOf("from") ?? beginning.from,
    at: twoOf("at") ?? beginning.at,
    wide: flag("wide", beginning.wide),
    loop: flag("loop", beginning.loop),
    learns: flag("learns", beginning.learns),
    rate: one("rate", 0.001, 1, beginning.rate),
    speed: one("speed", 10, 1e6, beginning.speed),
    taxi: list("taxi", beginning.taxi),
    game: game ?? beginning.game,
    model: list("model", beginning.model),
  };
}

const TOGETHER = 900; // milliseconds in which presses of one key are one gesture
const LATER = 60; // and after which a gesture is noted: the browser takes its time for that

/** The browser's history, one entry for each gesture. */
export class History {
  /** @param {State} beginning @param {(state: State) => void} restore */
  constructor(beginning, restore) {
    this.beginning = beginning;
    this.last = { gesture: "", time: -Infinity };
    /** @type {{state: State, gesture: string, timer: number} | null} */
    this.waiting = null;
    addEventListener("popstate", () => {
      this.last.gesture = "";
      restore(this.read());
    });
    addEventListener("pagehide", () => this.write());
  }

  /** @returns {State} */
  read() {
    return parse(location.hash, this.beginning);
  }

  /**
   * Note the state that a gesture has led to.
   * @param {State} state @param {string} gesture
   */
  commit(state, gesture) {
    if (this.waiting?.gesture === gesture) clearTimeout(this.waiting.timer);
    else this.write();
    this.waiting = { state, gesture, timer: setTimeout(() => this.write(), LATER) };
  }

  /** Write what waits to be noted. */
  write() {
    if (!this.waiting) return;
    const { state, gesture, timer } = this.waiting;
    clearTimeout(timer);
    this.waiting = null;
    const text = format(state, this.beginning);
    if (`#${text}` === (location.hash || "#")) return;
    const time = performance.now();
    const same = gesture === this.last.gesture && time - this.last.time < TOGETHER;
    const address = `${location.href.split("#")[0]}#${text}`;
    if (same) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    this.last = { gesture, time };
  }
}
