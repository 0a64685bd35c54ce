/** One operator's column: its slider, the plane, the branches, T(V) - V, and its fixed points. */

import { Chart } from "./chart.js";
import { Seen } from "./seen.js";
import { actionValues } from "./sweeps.js";
import { drawBranches } from "./branches.js";
import { drawChange } from "./change.js";
import { drawLearner, drawPlane, onLine } from "./plane.js";
import { shownBetas } from "./scene.js";
import { clip } from "./state.js";
import { count, parameter, pointWords, value } from "./words.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./sweeps.js").Pair} Pair */
/**
 * @typedef {object} Hands What a column does when it is touched.
 * @property {(parameter: number) => void} turn
 * @property {(from: Pair) => void} drop
 * @property {(gesture: string) => void} done
 * @property {() => void} magnify
 */
/**
 * @typedef {{ink: import("./chart.js").Ink, magnified: boolean, trail: import("./branches.js").Mark[]}} Look
 */

const FINE = 0.01;
const NEAR = 16; // pixels within which a fixed point is meant
const HINT =
  "Click or tap to place the cross, where sweeps start; the ring is where they end. " +
  "Full dots attract, hollow ones repel.";
/** @type {{[key: string]: number[]}} */
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
/** @type {{[key: string]: number}} */
const TURNS = { ArrowLeft: -FINE, ArrowRight: FINE, PageDown: -1, PageUp: 1 };
const TEXTS = {
  boltzmann: { name: "Boltzmann", symbol: "β", parameter: "Inverse temperature β of Boltzmann’s softmax" },
  mellowmax: { name: "Mellowmax", symbol: "ω", parameter: "Parameter ω of mellowmax" },
};

export class Twin {
  /** @param {"boltzmann" | "mellowmax"} kind @param {HTMLElement} home @param {Hands} hands */
  constructor(kind, home, hands) {
    const template = /** @type {HTMLTemplateElement} */ (document.getElementById("twin"));
    home.append(template.content.cloneNode(true));
    const find = (/** @type {string} */ name) => /** @type {any} */ (home.querySelector(`.${name}`));
    this.kind = kind;
    this.home = home;
    this.hands = hands;
    this.find = find;
    this.lit = -1;
    /** @type {Scene | null} */ this.scene = null;
    /** @type {Look | null} */ this.look = null;
    /** @type {import("./sarsa.js").Sarsa | null} */ this.learner = null;
    this.listed = "";
    this.range = "";
    /** @type {OffscreenCanvas | null} */ this.still = null;
    this.plane = new Chart(find("plane"), { left: 48, bottom: 36 });
    this.branches = new Chart(find("branches"));
    this.change = new Chart(find("change"), { left: 58 });
    const texts = TEXTS[kind];
    find("name").textContent = texts.name;
    find("symbol").textContent = texts.symbol;
    find("slider").setAttribute("aria-label", texts.parameter);
    find("number").setAttribute("aria-label", `${texts.parameter}, as a number`);
    const { name, symbol } = texts;
    const labels = {
      plane: `Plane of both action values under ${name}. Arrow keys move the start of the sweeps.`,
      branches: `Fixed points of ${name} over ${symbol}. Arrow keys turn ${symbol}.`,
      change: `What a sweep changes under ${name}: T of V minus V, which is 0 at the fixed points.`,
    };
    for (const [chart, label] of Object.entries(labels)) find(chart).setAttribute("aria-label", label);
    this.seen = new Seen([this.plane, this.branches, this.change], () => this.draw());
    if (kind === "mellowmax") find("magnify").remove();
    this.listen();
  }

  listen() {
    const { find, hands } = this;
    find("slider").addEventListener("input", () => hands.turn(Number(find("slider").value)));
    find("slider").addEventListener("change", () => hands.done("turn"));
    find("slider").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key.startsWith("Page")) this.step(event, TURNS[event.key]);
    });
    find("number").addEventListener("change", () => {
      const given = Number(find("number").value);
      if (find("number").value !== "" && Number.isFinite(given)) hands.turn(clip(given, 0, 1000));
      else find("number").value = String(this.parameter);
      hands.done("number");
    });
    find("magnify")?.addEventListener("click", () => hands.magnify());
    this.listenToPlane(find("plane"));
    this.listenToBranches(find("branches"));
    const { plane, branches, change } = this;
    for (const [name, chart] of Object.entries({ plane, branches, change })) {
      find(name).addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
        if (event.buttons === 0) this.light(this.nearest(name, chart, event));
      });
      find(name).addEventListener("pointerleave", () => this.light(-1));
    }
  }

  get parameter() {
    return this.scene ? this.scene.softmax.parameter : 0;
  }

  /**
   * A start is dropped by a click, dragged by a mouse, tapped by a finger, moved by the arrow keys.
   * @param {HTMLCanvasElement} canvas
   */
  listenToPlane(canvas) {
    const drop = (/** @type {PointerEvent} */ event) => {
      const { x, y } = this.plane.at(event.offsetX, event.offsetY);
      const [low, high] = this.plane.xs;
      this.hands.drop({ qb: clip(x, low, high), qa: clip(y, low, high) });
    };
    /** @type {{x: number, y: number} | null} */
    let pressed = null;
    canvas.addEventListener("pointerdown", (event) => {
      pressed = { x: event.offsetX, y: event.offsetY };
      if (event.pointerType === "touch") return; // it may be the beginning of a scroll
      canvas.setPointerCapture(event.pointerId);
      drop(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (pressed && event.pointerType !== "touch") drop(event);
    });
    canvas.addEventListener("pointerup", (event) => {
      const still = pressed && Math.hypot(event.offsetX - pressed.x, event.offsetY - pressed.y) < 10;
      if (event.pointerType === "touch" && still) drop(event);
      if (pressed) this.hands.done("drop");
      pressed = null;
    });
    canvas.addEventListener("pointercancel", () => (pressed = null));
    canvas.addEventListener("keydown", (event) => {
      if (!(event.key in MOVES) || !this.scene) return;
      event.preventDefault();
      const [low, high] = this.plane.xs;
      const step = (high - low) / (event.shiftKey ? 10 : 50);
      const { qa, qb } = this.scene.from;
      const [dx, dy] = MOVES[event.key];
      this.hands.drop({ qb: clip(qb + dx * step, low, high), qa: clip(qa + dy * step, low, high) });
      this.hands.done("drop");
    });
  }

  /**
   * The parameter is dragged: from anywhere with a mouse, sideways with a finger.
   * @param {HTMLCanvasElement} canvas
   */
  listenToBranches(canvas) {
    const turn = (/** @type {number} */ px) => {
      const { x, width } = this.branches.frame;
      const [low, high] = this.branches.xs;
      this.hands.turn(clip(low + ((px - x) / width) * (high - low), Math.max(0, low), high));
    };
    /** @type {{x: number, moved: boolean} | null} */
    let grip = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      grip = { x: event.offsetX, moved: event.pointerType !== "touch" };
      if (grip.moved) turn(event.offsetX);
    });
    const move = (/** @type {PointerEvent} */ event) => {
      if (!grip) return;
      grip.moved ||= Math.abs(event.offsetX - grip.x) > 8;
      if (grip.moved) turn(event.offsetX);
    };
    canvas.addEventListener("pointermove", move);
    let early = false; // a move comes with the next frame; the first since the last one is told before
    canvas.addEventListener("pointerrawupdate", (event) => {
      if (!grip || early) return;
      early = true;
      requestAnimationFrame(() => (early = false));
      move(/** @type {PointerEvent} */ (event));
    });
    canvas.addEventListener("pointerup", () => {
      if (grip?.moved) this.hands.done("turn");
      grip = null;
    });
    canvas.addEventListener("pointercancel", () => (grip = null));
    canvas.addEventListener("keydown", (event) => {
      if (event.key in TURNS) this.step(event, TURNS[event.key]);
    });
  }

  /**
   * Turn the parameter by a key.
   * @param {KeyboardEvent} event @param {number} by
   */
  step(event, by) {
    event.preventDefault();
    this.hands.turn(Math.max(0, Number((this.parameter + by).toFixed(6))));
    this.hands.done("turn");
  }

  /**
   * The fixed point that a pointer is next to; -1 for none.
   * @param {string} name
   * @param {Chart} chart
   * @param {PointerEvent} event
   */
  nearest(name, chart, event) {
    const { scene } = this;
    if (!scene) return -1;
    const places = scene.points.map((point) => {
      if (name === "plane") return onLine(chart, scene, point.value);
      if (name === "branches") return [chart.x(this.parameter), chart.y(point.value)];
      return [chart.x(point.value), chart.y(0)];
    });
    return places.findIndex(([px, py]) => Math.hypot(px - event.offsetX, py - event.offsetY) < NEAR);
  }

  /**
   * Light a fixed point in every panel.
   * @param {number} place
   */
  light(place) {
    if (place === this.lit || !this.scene || !this.look) return;
    this.lit = place;
    this.draw();
    const point = this.scene.points[place];
    this.find("remark").textContent = point ? pointWords(point) : HINT;
  }

  /**
   * Show a scene.
   * @param {Scene} scene @param {Look} look
   */
  show(scene, look) {
    this.scene = scene;
    this.look = look;
    this.lit = -1;
    this.find("remark").textContent = HINT;
    this.draw();
    this.tell();
  }

  /** Draw what is in view; the rest waits until it is. */
  draw() {
    const { scene, look, lit, seen } = this;
    if (!scene || !look) return;
    this.still = null;
    if (seen.shows(this.plane)) drawPlane(this.plane, scene, look.ink, lit);
    if (this.learner) this.showLearner(this.learner);
    if (seen.shows(this.branches)) drawBranches(this.branches, scene, look.ink, { ...look, lit });
    if (seen.shows(this.change)) drawChange(this.change, scene, look.ink, lit);
  }

  /** The column has another size. */
  measure() {
    for (const chart of [this.plane, this.branches, this.change]) chart.measure();
  }

  /**
   * Draw a learner over the plane, which is kept meanwhile.
   * @param {import("./sarsa.js").Sarsa} learner
   */
  showLearner(learner) {
    this.learner = learner;
    const { canvas, context } = this.plane;
    if (!canvas.width || !canvas.height || !this.seen.shows(this.plane)) return;
    if (!this.still) {
      this.still = new OffscreenCanvas(canvas.width, canvas.height);
      /** @type {OffscreenCanvasRenderingContext2D} */ (this.still.getContext("2d")).drawImage(canvas, 0, 0);
    }
    context.save();
    context.resetTransform();
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(this.still, 0, 0);
    context.restore();
    drawLearner(this.plane, learner);
  }

  /** The same in words and numbers. */
  tell() {
    const { scene, look, find } = this;
    if (!scene || !look) return;
    const { place, points, softmax } = scene;
    const now = softmax.parameter;
    const range = this.kind === "boltzmann" ? shownBetas(place, look.magnified, now) : [0, Math.max(place.most, now)];
    const slider = find("slider");
    if (range.join() !== this.range) {
      slider.min = String(Math.floor(range[0] / FINE) * FINE);
      slider.max = String(Math.ceil(range[1] / FINE) * FINE);
      slider.step = String(FINE);
      this.range = range.join();
    }
    slider.value = String(now);
    slider.setAttribute("aria-valuetext", `${parameter(now)}, ${count(points.length)}`);
    if (document.activeElement !== find("number")) find("number").value = String(Number(now.toFixed(4)));
    find("count").textContent = count(points.length);
    find("count").classList.toggle("several", points.length > 1);
    find("magnify")?.setAttribute("aria-pressed", String(look.magnified));
    find("magnify")?.toggleAttribute("hidden", !place.window);
    const rows = points.map((point, i) => this.cells(point, i === scene.end));
    if (rows.join() !== this.listed) find("points").replaceChildren(...rows.map(rowOf));
    this.listed = rows.join();
  }

  /**
   * What the table says of a fixed point, its kind first.
   * @param {import("./sweeps.js").FixedPoint} point
   * @param {boolean} here
   */
  cells(point, here) {
    const { qa, qb } = actionValues(/** @type {Scene} */ (this.scene).place.mdp, point.value);
    const kind = `${point.stable ? "stable" : "unstable"} ${here ? "here" : ""}`;
    const does = point.stable ? "attracts" : "repels";
    return [kind, value(point.value), value(qa), value(qb), point.slope.toFixed(4), does];
  }
}

/**
 * A row of the table.
 * @param {string[]} cells the class of the row, its header, and the rest
 */
function rowOf([kind, ...cells]) {
  const row = document.createElement("tr");
  row.className = kind;
  cells.forEach((text, i) => {
    const cell = document.createElement(i ? "td" : "th");
    if (!i) cell.setAttribute("scope", "row");
    cell.textContent = text;
    row.append(cell);
  });
  return row;
}
