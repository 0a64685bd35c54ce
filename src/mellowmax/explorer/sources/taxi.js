/** The taxi: in each cell the policy as arrows, and its inverse temperature as a tint, for one omega. */

/** @typedef {{policy: number[], temperature: number[], value: number[]}} Level */
/**
 * @typedef {{grid: string[], cells: number[][], passengers: number[], omegas: number[], levels: Level[]}} Block
 */
/** @typedef {import("./state.js").State} State */

const MOVES = [[0, -1], [0, 1], [1, 0], [-1, 0]]; // north, south, east and west, y down
const NAMES = ["north", "south", "east", "west"];

export class Taxi {
  /** @param {HTMLElement} home @param {Block} block @param {import("./gallery.js").Hands} hands */
  constructor(home, block, hands) {
    const find = (/** @type {string} */ name) => /** @type {any} */ (home.querySelector(`.${name}`));
    this.find = find;
    this.block = block;
    this.cell = -1; // that is pointed at
    this.destination = block.cells.findIndex(([row, column]) => block.grid[row][column] === "D");
    /** @type {State | null} */ this.state = null;
    /** @type {import("./chart.js").Ink} */ this.ink = {};
    find("level").max = String(block.omegas.length - 1);
    find("level").addEventListener("input", () => hands.change({ taxi: [Number(find("level").value), this.picked] }));
    find("level").addEventListener("change", () => hands.done("taxi"));
    block.passengers.forEach((cell, i) => {
      const [row, column] = block.cells[cell];
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.value = String(1 << i);
      label.append(box, ` the passenger of row ${row + 1}, column ${column + 1}`);
      box.addEventListener("change", () => {
        hands.change({ taxi: [Number(find("level").value), this.picked ^ Number(box.value)] });
        hands.done("picked");
      });
      find("board").append(label);
    });
    const canvas = find("grid");
    canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.point(this.cellAt(event)));
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const place = ["ArrowUp", "ArrowDown", "ArrowRight", "ArrowLeft"].indexOf(event.key);
      if (place < 0) return;
      event.preventDefault();
      const [dx, dy] = MOVES[place];
      const [row, column] = block.cells[Math.max(0, this.cell)];
      const next = block.cells.findIndex(([i, j]) => i === row + dy && j === column + dx);
      this.point(this.cell < 0 ? 0 : next < 0 ? this.cell : next);
    });
  }

  get picked() {
    return this.state ? this.state.taxi[1] % (1 << this.block.passengers.length) : 0;
  }

  get place() {
    return this.state ? Math.min(this.state.taxi[0], this.block.omegas.length - 1) : 0;
  }

  /** @param {State} state @param {import("./chart.js").Ink} ink */
  show(state, ink) {
    if (this.state?.taxi === state.taxi && this.ink === ink) return;
    this.state = state;
    this.ink = ink;
    const { find, block } = this;
    find("level").value = String(this.place);
    find("level").setAttribute("aria-valuetext", `omega ${block.omegas[this.place]}`);
    find("omega").textContent = block.omegas[this.place].toPrecision(3);
    for (const box of find("board").querySelectorAll("input")) box.checked = Boolean(this.picked & Number(box.value));
    this.draw();
  }

  /**
   * Say what there is in a cell.
   * @param {number} cell
   */
  point(cell) {
    if (cell === this.cell) return;
    this.cell = cell;
    this.draw();
  }

  /** @param {PointerEvent} event */
  cellAt(event) {
    const side = this.side();
    const [row, column] = [Math.floor(event.offsetY / side), Math.floor(event.offsetX / side)];
    return this.block.cells.findIndex(([i, j]) => i === row && j === column);
  }

  side() {
    return this.find("grid").clientWidth / this.block.grid[0].length;
  }

  /** @param {number} cell */
  stateOf(cell) {
    return (cell << this.block.passengers.length) + this.picked;
  }

  draw() {
    const { block, ink } = this;
    const canvas = this.find("grid");
    const side = this.side();
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(side * block.grid.length * ratio);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const level = block.levels[this.place];
    const all = block.cells.map((_, cell) => level.temperature[this.stateOf(cell)]);
    const sorted = all.filter((_, cell) => cell !== this.destination).sort((one, other) => one - other);
    const [low, high] = [sorted[0], sorted[sorted.length - 1]];
    const pale = sorted[Math.floor(sorted.length / 8)]; // a few cells next to D are far below the others
    block.cells.forEach(([row, column], cell) => {
      const [x, y] = [column * side, row * side];
      const state = this.stateOf(cell);
      context.fillStyle = ink.tint;
      context.fillRect(x + 1, y + 1, side - 2, side - 2);
      if (block.grid[row][column] === "D") return this.write(context, "D", x + side / 2, y + side / 2, side * 0.4);
      const share = high > pale ? Math.log(level.temperature[state] / pale) / Math.log(high / pale) : 0.5;
      context.globalAlpha = 0.06 + 0.44 * Math.max(0, share);
      context.fillStyle = ink.mellowmax;
      context.fillRect(x + 1, y + 1, side - 2, side - 2);
      context.globalAlpha = 1;
      MOVES.forEach(([dx, dy], action) => {
        const probability = level.policy[4 * state + action] / 100;
        this.petal(context, x + side / 2, y + side / 2, dx, dy, side * 0.46 * Math.sqrt(probability));
      });
      const mark = block.grid[row][column];
      const aboard = mark === "F" && this.picked & (1 << block.passengers.indexOf(cell));
      const number = level.temperature[state].toPrecision(3);
      if (side > 70) this.write(context, number, x + side - 19, y + side - 11, 11, 400);
      if (mark === "S" || (mark === "F" && !aboard)) this.write(context, mark, x + side * 0.15, y + side * 0.19, 13);
      if (cell === this.cell) {
        context.strokeStyle = ink.text;
        context.lineWidth = 2;
        context.strokeRect(x + 2, y + 2, side - 4, side - 4);
      }
    });
    this.tell(level, low, high);
  }

  /** A pointed leaf in the direction of a move. */
  petal(
    /** @type {CanvasRenderingContext2D} */ context,
    /** @type {number} */ x,
    /** @type {number} */ y,
    /** @type {number} */ dx,
    /** @type {number} */ dy,
    /** @type {number} */ length,
  ) {
    const wide = length * 0.22 + 1;
    context.beginPath();
    context.moveTo(x, y);
    const [middleX, middleY] = [x + dx * length * 0.5, y + dy * length * 0.5];
    context.quadraticCurveTo(middleX - dy * wide, middleY + dx * wide, x + dx * length, y + dy * length);
    context.quadraticCurveTo(middleX + dy * wide, middleY - dx * wide, x, y);
    context.fillStyle = this.ink.text;
    context.fill();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {number} size
   * @param {number} [weight]
   */
  write(context, text, x, y, size, weight = 600) {
    context.font = `${weight} ${size}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = this.ink.text;
    context.fillText(text, x, y);
  }

  /** @param {Level} level @param {number} low @param {number} high */
  tell(level, low, high) {
    const { block, cell } = this;
    if (cell < 0) {
      this.find("said").textContent =
        `The inverse temperature of the policy is from ${low} to ${high}: the deeper the blue, the higher, ` +
        "and the nearer the policy is to the greedy one.";
      return;
    }
    const state = this.stateOf(cell);
    const [row, column] = block.cells[cell];
    const moves = NAMES.map((name, i) => `${name} ${level.policy[4 * state + i]} %`).join(", ");
    this.find("said").textContent =
      block.grid[row][column] === "D"
        ? "The destination, where the episode ends."
        : `Row ${row + 1}, column ${column + 1}: ${moves}; ` +
          `inverse temperature ${level.temperature[state]}, value ${level.value[state]}.`;
  }
}
