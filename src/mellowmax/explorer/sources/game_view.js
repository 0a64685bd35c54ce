/** The game of two players: what each answers, where the answers meet, and all equilibria over the parameter. */

import { Chart } from "./chart.js";
import { answers, branches, columnAnswer, equilibria, rowAnswer } from "./game.js";
import { scrubbed } from "./scrub.js";
import { Seen } from "./seen.js";
import { clip, GAMES, PAYOFF_LIMITS } from "./state.js";
import { parameter, value } from "./words.js";

/** @typedef {import("./game.js").Equilibrium} Equilibrium */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./chart.js").Ink} Ink */

const KINDS = /** @type {const} */ (["boltzmann", "mellowmax"]);
const SYMBOLS = { boltzmann: "β", mellowmax: "ω" };
const REACH = { boltzmann: 18, mellowmax: 54 }; // of the parameter, where no difference of payoffs is above 1
const GRAIN = 200; // points of an answer
const GRID = /** @type {const} */ ([120, 100]); // of the branches
const COUNTS = ["no equilibrium", "one equilibrium", "two equilibria", "three equilibria"];
const CELLS = ["up, left", "up, right", "down, left", "down, right"];

export class GameView {
  /** @param {HTMLElement} home @param {import("./gallery.js").Hands} hands */
  constructor(home, hands) {
    const find = (/** @type {string} */ name) => /** @type {any} */ (home.querySelector(`.${name}`));
    this.find = find;
    this.hands = hands;
    /** @type {number[]} */ this.game = GAMES[0].game;
    /** @type {Ink} */ this.ink = {};
    this.answers = new Chart(find("answers"), { left: 52 });
    this.equilibria = new Chart(find("equilibria"), { left: 52 });
    this.charts = [this.answers, this.equilibria];
    /** @type {Equilibrium[]} */ this.points = [];
    this.drawn = "";
    /** @type {import("./game.js").Piece[]} */ this.pieces = [];
    this.seen = new Seen(this.charts, () => this.draw());
    for (const { name, game } of GAMES) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => this.set(game, "game"));
      find("games").append(button);
    }
    this.scrubs = [...home.querySelectorAll(".payoffs .scrub")].map((element, i) => {
      element.setAttribute("aria-label", `Payoff of the ${i % 2 ? "column" : "row"} player at ${CELLS[i >> 1]}`);
      const change = (/** @type {number} */ payoff) => this.put(3 + i, payoff, "");
      return scrubbed(/** @type {HTMLElement} */ (element), PAYOFF_LIMITS, change, () => hands.done("payoff"));
    });
    for (const radio of home.querySelectorAll("input[type=radio]")) {
      radio.addEventListener("change", () => {
        const kind = KINDS.indexOf(/** @type {any} */ (radio).value);
        const share = REACH[KINDS[kind]] / REACH[this.kind];
        this.set([kind, Number((this.game[1] * share).toFixed(2)), ...this.game.slice(2)], "kind");
      });
    }
    find("level").addEventListener("input", () => this.put(1, Number(find("level").value), ""));
    find("level").addEventListener("change", () => hands.done("game-turn"));
    this.listen(find("answers"), this.answers, 2, [0, 1]);
    this.listen(find("equilibria"), this.equilibria, 1, [0, 1000]);
  }

  get kind() {
    return KINDS[this.game[0]];
  }

  get softmax() {
    return { kind: this.kind, parameter: this.game[1] };
  }

  get payoffs() {
    return this.game.slice(3);
  }

  /** @param {number[]} game @param {string} gesture that has ended; none if it is under way */
  set(game, gesture) {
    this.hands.change({ game });
    if (gesture) this.hands.done(gesture);
  }

  /** Set one of its numbers. @param {number} place @param {number} number @param {string} gesture */
  put(place, number, gesture) {
    this.set(this.game.map((old, i) => (i === place ? number : old)), gesture);
  }

  /**
   * One of the numbers is dragged sideways on a chart, and set by a tap.
   * @param {HTMLCanvasElement} canvas
   * @param {Chart} chart
   * @param {number} place
   * @param {[number, number]} limits
   */
  listen(canvas, chart, place, limits) {
    const put = (/** @type {PointerEvent} */ event, gesture = "") => {
      const at = clip(chart.at(event.offsetX, 0).x, Math.max(limits[0], chart.xs[0]), Math.min(limits[1], chart.xs[1]));
      this.put(place, Number(at.toFixed(place === 2 ? 3 : 2)), gesture);
    };
    /** @type {{x: number, moved: boolean} | null} */
    let grip = null;
    canvas.addEventListener("pointerdown", (event) => {
      grip = { x: event.offsetX, moved: event.pointerType !== "touch" };
      if (!grip.moved) return; // it may be the beginning of a scroll
      canvas.setPointerCapture(event.pointerId);
      put(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!grip) return;
      grip.moved ||= Math.abs(event.offsetX - grip.x) > 8;
      if (grip.moved) put(event);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (grip) put(event, "game-drag");
      grip = null;
    });
    canvas.addEventListener("pointercancel", () => (grip = null));
    canvas.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1, PageDown: -20, PageUp: 20 }[event.key];
      if (!way) return;
      event.preventDefault();
      const step = place === 2 ? 0.02 : 0.05;
      this.put(place, Number(clip(this.game[place] + way * step, ...limits).toFixed(3)), "game-key");
    });
  }

  /** The page has another size or other colours. */
  measure() {
    for (const chart of this.charts) chart.measure();
  }

  /** @param {State} state @param {Ink} ink */
  show(state, ink) {
    if (this.game === state.game && this.ink === ink && this.drawn) return;
    this.game = state.game;
    this.ink = ink;
    this.points = equilibria(this.payoffs, this.softmax);
    this.draw();
    this.tell();
  }

  /** The largest parameter that is drawn. */
  get most() {
    const g = this.payoffs;
    const size = Math.max(...[g[0] - g[4], g[2] - g[6], g[1] - g[3], g[5] - g[7]].map(Math.abs)) || 1;
    return Math.min(1000, Math.max(REACH[this.kind] / size, this.game[1]));
  }

  draw() {
    if (this.seen.shows(this.answers)) this.drawAnswers();
    if (this.seen.shows(this.equilibria)) this.drawEquilibria();
    this.drawn = "yes";
  }

  drawAnswers() {
    const { answers: chart, ink, payoffs, softmax } = this;
    const along = Array.from({ length: GRAIN + 1 }, (_, i) => i / GRAIN);
    chart.begin([0, 1], [0, 1], ink);
    chart.axes("probability of up", "probability of left", { yTicks: 4 });
    const place = (/** @type {number} */ p, /** @type {number} */ q) =>
      /** @type {[number, number]} */ ([chart.x(p), chart.y(q)]);
    const own = ink[this.kind];
    const ofRow = along.map((q) => place(rowAnswer(payoffs, softmax, q), q));
    const ofColumn = along.map((p) => place(p, columnAnswer(payoffs, softmax, p)));
    chart.line(ofRow, { colour: ink.sparse, width: 2.5 });
    chart.line(ofColumn, { colour: ink.sum, width: 2.5, dash: [9, 5] });
    const { corners } = answers(payoffs, softmax, this.game[2], 60);
    const [start] = corners;
    chart.line([[chart.x(start[0]), chart.y(0)], ...corners.map(([p, q]) => place(p, q))], { colour: ink.text, width: 1.25, alpha: 0.8 });
    this.drawStart(chart);
    for (const { p, q, stable } of this.points) chart.dot(...place(p, q), { colour: own, stable });
    this.drawName("row’s answer", ofRow, ofColumn, ink.sparse);
    this.drawName("column’s answer", ofColumn, ofRow, ink.sum);
  }

  /**
   * The name of a line, where it is farthest from the other one.
   * @param {string} text
   * @param {[number, number][]} line
   * @param {[number, number][]} other
   * @param {string} colour
   */
  drawName(text, line, other, colour) {
    const { answers: chart } = this;
    const { y, height } = chart.frame;
    const distance = (/** @type {[number, number]} */ [px, py]) => Math.min(...other.map(([x, y]) => Math.hypot(x - px, y - py)));
    const distances = line.map((point, i) => (i % 10 ? -1 : distance(point)));
    const [px, py] = line[distances.indexOf(Math.max(...distances))];
    chart.label(text, px + 9, clip(py - 12, y + 12, y + height - 16), { colour, bold: true });
  }

  /** The mark of where the row player starts. @param {Chart} chart */
  drawStart(chart) {
    const { context, ink } = chart;
    const [px, py] = [chart.x(this.game[2]), chart.y(0)];
    context.beginPath();
    context.moveTo(px, py - 9), context.lineTo(px - 6, py + 1), context.lineTo(px + 6, py + 1);
    context.closePath();
    context.fillStyle = ink.text;
    context.fill();
  }

  drawEquilibria() {
    const { equilibria: chart, ink, kind, most } = this;
    const symbol = SYMBOLS[kind];
    const key = [kind, most, ...this.payoffs].join();
    if (key !== this.key) this.pieces = branches(this.payoffs, kind, most, ...GRID);
    this.key = key;
    chart.begin([0, most], [0, 1], ink);
    chart.axes(symbol, "probability of up", { yTicks: 4 });
    const colour = ink[kind];
    this.pieces.forEach(({ from, to, stable }, i) => {
      if (!stable && i % 2) return; // dashes
      chart.line([from, to].map(([x, y]) => [chart.x(x), chart.y(y)]), { colour, width: stable ? 2.75 : 1.5 });
    });
    const px = chart.x(this.game[1]);
    const { y, height } = chart.frame;
    chart.line([[px, y], [px, y + height]], { colour: ink.text, width: 1.5 });
    for (const { p, stable } of this.points) chart.dot(px, chart.y(p), { colour, stable });
  }

  /** The same in words and numbers. */
  tell() {
    const { find, game, points, kind } = this;
    this.scrubs.forEach((show, i) => show(game[3 + i]));
    for (const radio of find("kinds").querySelectorAll("input")) radio.checked = radio.value === kind;
    const now = `${SYMBOLS[kind]} = ${parameter(game[1])}`;
    const slider = find("level");
    slider.max = String(Math.ceil(this.most * 20) / 20);
    slider.value = String(game[1]);
    const many = COUNTS[points.length] ?? `${points.length} equilibria`;
    slider.setAttribute("aria-valuetext", `${parameter(game[1])}, ${many}`);
    find("parameter").textContent = now;
    find("said").textContent = this.words(now, many);
    find("points").replaceChildren(...points.map(rowOf));
    const has = points.map(({ p, q, stable }) => `${stable ? "stable" : "unstable"} at ${value(p)}, ${value(q)}`).join("; ");
    const start = `Arrow keys move where the row player starts, ${game[2]}.`;
    find("answers").setAttribute("aria-label", `What each player answers to the other: they meet ${has}. ${start}`);
    find("equilibria").setAttribute("aria-label", `Equilibria over ${SYMBOLS[kind]}: ${has}. Arrow keys turn ${SYMBOLS[kind]}.`);
  }

  /** @param {string} now @param {string} many */
  words(now, many) {
    const stable = this.points.filter((point) => point.stable).length;
    const some = ["None", "One", "Two", "Three"][stable] ?? String(stable);
    const kinds = this.points.length === 1 ? (stable ? "It is stable" : "It is not stable") : `${some} of them ${stable === 1 ? "is" : "are"} stable`;
    const { corners, settled } = answers(this.payoffs, this.softmax, this.game[2]);
    const [p, q] = corners[corners.length - 1];
    const who = `If the row player begins with up ${value(this.game[2])}, and both answer in turn,`;
    const way = settled ? `${who} they end at up ${value(p)}, left ${value(q)}.` : `${who} they do not settle within 400 rounds.`;
    return `At ${now} there is ${many}. ${kinds}. ${way}`.replace(/there is (two|three|\d)/, "there are $1");
  }
}

/** @param {Equilibrium} point */
function rowOf({ p, q, values, stable }) {
  const row = document.createElement("tr");
  row.className = stable ? "stable" : "unstable";
  const cells = [value(p), value(q), ...values.map(value), stable ? "stable" : "unstable"];
  cells.forEach((text, i) => {
    const cell = document.createElement(i ? "td" : "th");
    if (!i) cell.setAttribute("scope", "row");
    cell.textContent = text;
    row.append(cell);
  });
  return row;
}
