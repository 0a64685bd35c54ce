/** A larger model of the reader's: values, and a state's policy and inverse temperature, over the parameter. */

import { Chart } from "./chart.js";
import { value } from "./words.js";

/** @typedef {{value: number[], policy: number[], temperature: number[], converged: boolean}} Level */
/** @typedef {{name: string, parameters: number[], levels: Level[]}} Operator */
/**
 * @typedef {{name: string, states: number, actions: number, discount: number, terminal: number[], operators: Operator[]}} Block
 */
/** @typedef {import("./state.js").State} State */

const LINES = 80; // states whose values are drawn
const ROWS = 40; // states that are listed
const SYMBOLS = /** @type {{[name: string]: string}} */ ({ Mellowmax: "ω", Boltzmann: "β" });

export class ModelView {
  /** @param {HTMLElement} home @param {Block} block @param {import("./gallery.js").Hands} hands */
  constructor(home, block, hands) {
    const find = (/** @type {string} */ name) => /** @type {any} */ (home.querySelector(`.${name}`));
    this.find = find;
    this.block = block;
    /** @type {State | null} */ this.state = null;
    /** @type {import("./chart.js").Ink} */ this.ink = {};
    find("title").textContent = `Your model: ${block.name}`;
    const sizes = `${block.states} states, ${block.actions} actions, discount ${block.discount}`;
    find("said").textContent = `${sizes}. Solved by the library; drag on a chart, or choose a state.`;
    this.values = new Chart(find("values"), { left: 52 });
    this.policy = new Chart(find("policy"), { left: 52 });
    this.temperature = new Chart(find("temperature"), { left: 52 });
    for (const { name } of block.operators) find("operator").append(new Option(name, name));
    find("number").max = String(block.states - 1);
    find("level").max = String(block.operators[0].parameters.length - 1);
    const change = (/** @type {number[]} */ model, /** @type {string} */ gesture) => {
      hands.change({ model });
      if (gesture) hands.done(gesture);
    };
    find("operator").addEventListener("change", () => {
      change([find("operator").selectedIndex, this.at[1], this.at[2]], "operator");
    });
    find("level").addEventListener("input", () => change([this.at[0], Number(find("level").value), this.at[2]], ""));
    find("level").addEventListener("change", () => hands.done("level"));
    find("number").addEventListener("change", () => {
      change([this.at[0], this.at[1], Number(find("number").value)], "state");
    });
    for (const chart of [this.values, this.policy, this.temperature]) {
      const turn = (/** @type {PointerEvent} */ event) => {
        const at = chart.at(event.offsetX, 0).x;
        const logs = this.operator.parameters.map((x) => Math.abs(Math.log10(x) - at));
        change([this.at[0], logs.indexOf(Math.min(...logs)), this.at[2]], "");
      };
      chart.canvas.addEventListener("pointerdown", turn);
      chart.canvas.addEventListener("pointermove", (event) => event.buttons && turn(event));
      chart.canvas.addEventListener("pointerup", () => hands.done("level"));
    }
  }

  /** The operator, the place of its parameter, and the state, each one that there is. */
  get at() {
    const { operators, states } = this.block;
    const [operator, level, state] = this.state?.model ?? [0, 0, 0];
    const there = Math.min(operator, operators.length - 1);
    return [there, Math.min(level, operators[there].levels.length - 1), Math.min(state, states - 1)];
  }

  get operator() {
    return this.block.operators[this.at[0]];
  }

  /** @param {State} state @param {import("./chart.js").Ink} ink */
  show(state, ink) {
    if (this.state?.model === state.model && this.ink === ink) return;
    if (this.ink !== ink) for (const chart of [this.values, this.policy, this.temperature]) chart.measure();
    this.state = state;
    this.ink = ink;
    this.draw(ink);
    this.tell();
  }

  /** @param {import("./chart.js").Ink} ink */
  draw(ink) {
    const { levels, parameters, name } = this.operator;
    const [, place, state] = this.at;
    const colour = ink[name.toLowerCase()];
    const logs = parameters.map(Math.log10);
    /** @type {[number, number]} */
    const xs = [logs[0], logs[logs.length - 1]];
    const now = (/** @type {Chart} */ chart) => {
      const px = chart.x(logs[place]);
      const { y, height } = chart.frame;
      chart.line([[px, y], [px, y + height]], { colour: ink.text, width: 1.5 });
    };
    const begin = (/** @type {Chart} */ chart, /** @type {number[]} */ ys, /** @type {string} */ yName) => {
      const [low, high] = [Math.min(...ys), Math.max(...ys)];
      const margin = (high - low) * 0.06 || 0.5;
      chart.begin(xs, [low - margin, high + margin], ink);
      chart.axes(`log₁₀ ${SYMBOLS[name]}`, yName, { yTicks: 4 });
    };
    const along = (/** @type {Chart} */ chart, /** @type {(level: Level) => number} */ of) =>
      levels.map((level, i) => /** @type {[number, number]} */ ([chart.x(logs[i]), chart.y(of(level))]));
    const every = Math.max(1, Math.ceil(this.block.states / LINES));
    begin(this.values, levels.flatMap((level) => level.value), "value of each state");
    this.values.inside(() => {
      for (let s = 0; s < this.block.states; s += every) {
        this.values.line(along(this.values, (level) => level.value[s]), { colour: ink.soft, width: 1, alpha: 0.4 });
      }
      this.values.line(along(this.values, (level) => level.value[state]), { colour, width: 3 });
    });
    now(this.values);
    begin(this.temperature, levels.map((level) => level.temperature[state]), `inverse temperature in state ${state}`);
    const temperatures = along(this.temperature, (level) => level.temperature[state]);
    this.temperature.line(temperatures, { colour, width: 2.5 });
    now(this.temperature);
    this.drawPolicy(xs, logs, ink, colour);
    now(this.policy);
  }

  /**
   * The probabilities of the actions, one above the other.
   * @param {[number, number]} xs
   * @param {number[]} logs
   * @param {import("./chart.js").Ink} ink
   * @param {string} colour
   */
  drawPolicy(xs, logs, ink, colour) {
    const { policy: chart, block } = this;
    const { levels } = this.operator;
    const state = this.at[2];
    chart.begin(xs, [0, 100], ink);
    chart.axes(`log₁₀ ${SYMBOLS[this.operator.name]}`, `policy in state ${state}, %`, { yTicks: 4, grid: false });
    const { context } = chart;
    const below = levels.map(() => 0);
    const policies = levels.map((level) => level.policy.slice(state * block.actions, (state + 1) * block.actions));
    const wholes = policies.map((policy) => policy.reduce((sum, share) => sum + share, 0) || 1); // 100 but for rounding
    for (let action = 0; action < block.actions; action++) {
      const top = policies.map((policy, i) => below[i] + (100 * policy[action]) / wholes[i]);
      context.beginPath();
      logs.forEach((x, i) => context.lineTo(chart.x(x), chart.y(top[i])));
      for (let i = logs.length - 1; i >= 0; i--) context.lineTo(chart.x(logs[i]), chart.y(below[i]));
      context.closePath();
      context.globalAlpha = 0.12 + (0.6 * (action + 1)) / block.actions;
      context.fillStyle = colour;
      context.fill();
      context.globalAlpha = 1;
      context.strokeStyle = ink.card;
      context.stroke();
      const last = logs.length - 1;
      const widest = top.map((y, i) => y - below[i]).reduce((best, y, i, all) => (y > all[best] ? i : best), last);
      if (top[widest] - below[widest] > 12) {
        const { x, width } = chart.frame;
        const px = Math.min(Math.max(chart.x(logs[widest]), x + 12), x + width - 12);
        chart.label(String(action), px, chart.y((top[widest] + below[widest]) / 2), { align: "center" });
      }
      top.forEach((y, i) => (below[i] = y));
    }
  }

  tell() {
    const { find, block } = this;
    const [operator, place, state] = this.at;
    const { parameters, levels, name } = this.operator;
    const level = levels[place];
    find("operator").selectedIndex = operator;
    find("level").value = String(place);
    find("level").setAttribute("aria-valuetext", `${parameters[place]}`);
    find("number").value = String(state);
    find("parameter").textContent = `${SYMBOLS[name]} = ${parameters[place]}`;
    find("settled").textContent = level.converged ? "" : "Planning did not converge here: these are its last values.";
    const first = Math.min(Math.max(0, state - ROWS / 2), Math.max(0, block.states - ROWS));
    const shown = Array.from({ length: Math.min(ROWS, block.states) }, (_, i) => first + i);
    find("rows").replaceChildren(...shown.map((s) => this.row(s, level, s === state)));
  }

  /** @param {number} s @param {Level} level @param {boolean} here */
  row(s, level, here) {
    const { actions } = this.block;
    const row = document.createElement("tr");
    const policy = level.policy.slice(s * actions, (s + 1) * actions);
    const chances = policy.map((p, a) => `${a}: ${p} %`).join("  ");
    const cells = [String(s), value(level.value[s]), String(level.temperature[s]), chances];
    if (this.block.terminal.includes(s)) cells.splice(2, 2, "", "the episode has ended");
    cells.forEach((text, i) => {
      const cell = document.createElement(i ? "td" : "th");
      if (!i) cell.setAttribute("scope", "row");
      cell.textContent = text;
      row.append(cell);
    });
    row.className = here ? "here" : "";
    return row;
  }
}
