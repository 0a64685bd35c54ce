/** The page: the state, what is drawn from it, and what hands do to it. */

import { Chart, readInk } from "./chart.js";
import { brokenMDP } from "./broken_mdp.js";
import { showGallery } from "./gallery.js";
import { GameView } from "./game_view.js";
import { Learning } from "./learning.js";
import { loopOf } from "./loop.js";
import { drawOperators } from "./operator_curves.js";
import { cornerOf, endOf, placeOf, sceneOf } from "./scene.js";
import { scrubbed } from "./scrub.js";
import { BEGINNING, format, History, LIMITS, parse } from "./state.js";
import { PAPER } from "./sweeps.js";
import { Seen } from "./seen.js";
import { Twin } from "./twin.js";
import { sentence } from "./words.js";

/** @typedef {import("./state.js").State} State */

const SPOKEN = 700; // milliseconds of quiet before the sentence is read aloud
const KEPT = 400; // marks of a trail

const find = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const blocks = [...document.querySelectorAll("script.data")].map((block) => JSON.parse(block.textContent ?? ""));
const own = blocks.find((block) => block.kind === "two-state");
const model = blocks.find((block) => block.kind === "model");
const half = model ? Math.floor(model.operators[0].parameters.length / 2) : 0;
const ofPaper = { ...BEGINNING, model: [0, half, 0] };
const beginning = own ? beginningWith(own.mdp) : ofPaper;
const quiet = matchMedia("(prefers-reduced-motion: reduce)");

/** @type {State} */ let state = beginning;
let place = placeOf(state.mdp);
/** @type {{[kind: string]: import("./scene.js").Scene}} */
const scenes = {};
let ink = readInk();
/** @type {import("./branches.js").Mark[]} */ let trail = [];
/** @type {number | null} */ let before = null; // the value at which a loop began
let moving = 0; // the frame of a loop under way
let speaking = 0;

const twins = /** @type {const} */ (["boltzmann", "mellowmax"]).map(
  (kind) =>
    new Twin(kind, find(kind), {
      turn: (parameter) => (kind === "boltzmann" ? turn(parameter) : change({ omega: parameter })),
      drop: (from) => change({ from, at: null, loop: false }),
      done,
      magnify: () => (change({ wide: !state.wide }), done("magnify")),
    }),
);
const operators = new Chart(find("operators"), { left: 50 });
const seen = new Seen([operators], drawCurves);
find("others").addEventListener("change", drawCurves);
const scrubs = Object.entries(LIMITS).map(([name, limits]) => {
  const set = (/** @type {number} */ value) => {
    change({ mdp: { ...state.mdp, [name]: value }, at: endOf(scenes.boltzmann), loop: false });
  };
  return { name, show: scrubbed(find(name), limits, set, () => done(name)) };
});
const learning = new Learning({ twins, state: () => state, start, still: () => quiet.matches, change, done });
const gallery = showGallery(blocks, { change, done, still: () => quiet.matches });
const game = new GameView(find("game"), { change, done, still: () => quiet.matches });
const past = new History(beginning, restore);

/**
 * Where the reader's own model begins: between its folds, if it has any.
 * @param {import("./sweeps.js").MDP} mdp
 * @returns {State}
 */
function beginningWith(mdp) {
  const { window, most } = placeOf(mdp);
  const middle = Number((window ? window.middle : most / 2).toFixed(2));
  return { ...BEGINNING, mdp, beta: middle, omega: middle };
}

/**
 * Change a part of the state, and draw what depends on it.
 * @param {Partial<State>} part
 */
function change(part) {
  const last = state;
  state = { ...state, ...part };
  if (part.mdp) place = placeOf(state.mdp);
  const both = part.mdp || "from" in part;
  if (both) {
    trail = [];
    learning.stop();
  }
  if (!state.loop) before = null;
  const turns = /** @type {(keyof State)[]} */ (["beta", "at", "wide", "loop"]);
  const turned = turns.some((name) => last[name] !== state[name]);
  if (both || turned) draw(0);
  if (both || last.omega !== state.omega) draw(1);
  drawRest();
  if (["learns", "rate", "speed", "mdp", "from"].some((name) => name in part)) learning.follow();
  else if (state.learns) learning.show();
}

/**
 * Turn beta: planning goes on from where it was.
 * @param {number} beta
 */
function turn(beta) {
  if (beta === state.beta) return;
  cancelAnimationFrame(moving);
  state = { ...state, loop: false };
  before = null;
  carry(beta);
  paint(0);
  drawRest();
  if (state.learns) learning.show();
}

/** @param {number} beta */
function carry(beta) {
  const old = scenes.boltzmann;
  const mark = { parameter: state.beta, value: valueOf(old) };
  state = { ...state, at: endOf(old), beta };
  compute(0);
  if (!trail.length) trail.push(mark);
  const now = valueOf(scenes.boltzmann);
  const jumps = Math.abs(now - mark.value) > 0.04 * (place.values[1] - place.values[0]);
  if (jumps) trail.push({ parameter: beta, value: mark.value });
  trail.push({ parameter: beta, value: now });
  trail = trail.slice(-KEPT);
}

/** @param {import("./scene.js").Scene} scene */
function valueOf({ points, end, path }) {
  return end < 0 ? path.values[path.values.length - 1] : points[end].value;
}

/**
 * Up through the fold and back.
 * @param {boolean} still all at once?
 */
function takeLoop(still) {
  cancelAnimationFrame(moving);
  const loop = loopOf(place, state.beta);
  if (!loop) return;
  trail = [];
  state = { ...state, beta: loop.start, at: loop.from, loop: true };
  compute(0);
  before = null;
  const end = () => {
    before = loop.before;
    paint(0);
    drawRest();
  };
  if (still) {
    loop.betas.forEach(carry);
    return end();
  }
  let next = 0;
  const step = () => {
    carry(loop.betas[next++]);
    if (next === loop.betas.length) {
      end();
      return done("loop");
    }
    paint(0);
    drawRest();
    moving = requestAnimationFrame(step);
  };
  step();
}

/** Where sweeps and learners start. */
function start() {
  return state.from ?? cornerOf(place);
}

/**
 * Of one of the two operators, what there is to see.
 * @param {number} which
 */
function compute(which) {
  const kind = twins[which].kind;
  const parameter = which ? state.omega : state.beta;
  scenes[kind] = sceneOf(place, { kind, parameter }, which ? start() : (state.at ?? start()));
}

/**
 * Draw its column.
 * @param {number} which
 */
function paint(which) {
  const { kind } = twins[which];
  twins[which].show(scenes[kind], { ink, magnified: !state.wide && place.window !== null, trail: which ? [] : trail });
}

/** @param {number} which */
function draw(which) {
  compute(which);
  paint(which);
}

/** Draw what both columns share, and say what is seen. */
function drawRest() {
  drawCurves();
  for (const { name, show } of scrubs) show(state.mdp[/** @type {keyof import("./sweeps.js").MDP} */ (name)]);
  find("ends-a").textContent = (1 - state.mdp.pa).toFixed(3);
  find("ends-b").textContent = (1 - state.mdp.pb).toFixed(3);
  find("loop").disabled = !place.window;
  gallery.show(state, ink);
  game.show(state, ink);
  const words = sentence(scenes.boltzmann, scenes.mellowmax, state, before);
  find("sentence").replaceChildren(...words.map((part) => (typeof part === "string" ? part : strong(part.strong))));
  clearTimeout(speaking);
  speaking = setTimeout(() => (find("spoken").textContent = find("sentence").textContent), SPOKEN);
  const here = format({ ...state, learns: false }, beginning);
  for (const link of steps) {
    if (link.hash === `#${here || `beta=${beginning.beta}`}`) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
}

function drawCurves() {
  const { beta, omega } = state;
  const widest = place.plane[1] - place.plane[0];
  if (seen.shows(operators)) {
    const held = endOf(scenes.boltzmann).qb;
    drawOperators(operators, ink, { beta, omega, held, widest, others: find("others").checked });
  }
}

/** @param {string} text */
function strong(text) {
  const element = document.createElement("strong");
  element.textContent = text;
  return element;
}

/**
 * A gesture has ended.
 * @param {string} gesture
 */
function done(gesture) {
  past.commit(state, gesture);
}

/**
 * Show a state of the address.
 * @param {State} given
 */
function restore(given) {
  cancelAnimationFrame(moving);
  state = given;
  place = placeOf(state.mdp);
  trail = [];
  before = null;
  draw(0);
  draw(1);
  if (state.loop) takeLoop(true);
  drawRest();
  learning.stop();
  learning.follow();
}

/** A light or a dark page, or paper: the colours are read again. */
function repaint() {
  ink = readInk();
  for (const one of [...twins, operators, game]) one.measure();
  draw(0);
  draw(1);
  drawRest();
  learning.show();
}

const steps = /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll("#steps a")]);
for (const link of steps) {
  link.hash = format(parse(link.hash, ofPaper), beginning) || `beta=${beginning.beta}`;
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const given = parse(link.hash, beginning);
    restore({ ...given, loop: false });
    if (given.loop && quiet.matches) takeLoop(true);
    else if (given.loop) return takeLoop(false);
    done("step");
  });
}

find("loop").addEventListener("click", () => {
  takeLoop(quiet.matches);
  if (quiet.matches) done("loop");
});
find("break").addEventListener("click", () => {
  const mdp = brokenMDP(Math.floor(Math.random() * 2 ** 32));
  const begun = beginningWith(mdp);
  change({ mdp, beta: begun.beta, omega: begun.omega, from: null, at: null, loop: false, wide: false });
  done("break");
});
find("reset").addEventListener("click", () => {
  restore(beginning);
  done("reset");
});
find("copy").addEventListener("click", async () => {
  const said = await navigator.clipboard.writeText(location.href).then(
    () => "Copied",
    () => "Copy it from the address bar",
  );
  find("copy").textContent = said;
  setTimeout(() => (find("copy").textContent = "Copy link"), 1600);
});

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input[type=number]")) return;
  if (event.key === " " && !target.closest("button, a, input, summary, select, [role=slider]")) {
    event.preventDefault();
    find("learn").click();
  } else if ((event.key === "[" || event.key === "]") && place.window) {
    const { low, high } = place.window; // the last digit is rounded into the window
    turn(event.key === "[" ? Math.ceil(low * 1e4) / 1e4 : Math.floor(high * 1e4) / 1e4);
    done("fold");
  }
});

for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", repaint);
quiet.addEventListener("change", () => learning.follow());
new ResizeObserver(repaint).observe(find("twins"));
if (own) {
  find("whose").textContent = `This is your model, ${own.name}.`;
  find("paper").addEventListener("click", () => {
    restore(parse(format({ ...ofPaper, mdp: PAPER }, beginning), beginning));
    done("paper");
  });
}
find("paper").hidden = !own;
restore(past.read());
