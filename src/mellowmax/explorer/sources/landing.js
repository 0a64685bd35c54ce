/** A landing, drawn from its states: the ground, the hull, the legs, and what fires. */

/**
 * @typedef {object} Block
 * @property {string} title
 * @property {number[]} ground Heights from x = 0 to 20.
 * @property {[number, number][]} hull Corners about the centre of mass, in metres.
 * @property {[number, number][]} leg
 * @property {number} fine How many steps a metre and a radian have.
 * @property {number} seconds Between two frames.
 * @property {number} return
 * @property {number} steps
 * @property {boolean} ended
 * @property {number[][]} frames Hull, right leg and left leg as x, y and angle; legs on the ground; action.
 */

const [WIDE, HIGH] = [20, 400 / 30]; // metres in view
const FLAGS = [8, 12];
/**
 * What fires, about the hull's centre: to the right with action 1, which pushes to the left.
 * @type {{[action: number]: [number, number][]}}
 */
const FLAMES = {
  1: [[0.57, 0.5], [0.57, 0.23], [1.2, 0.37]],
  2: [[-0.2, -0.43], [0.2, -0.43], [0, -1.25]],
  3: [[-0.57, 0.5], [-0.57, 0.23], [-1.2, 0.37]],
};

export class Landing {
  /** @param {HTMLElement} home @param {Block} block @param {import("./gallery.js").Hands} hands */
  constructor(home, block, hands) {
    const find = (/** @type {string} */ name) => /** @type {any} */ (home.querySelector(`.${name}`));
    this.find = find;
    this.block = block;
    this.hands = hands;
    this.frame = block.frames.length - 1; // all of its way is seen
    this.running = 0;
    /** @type {import("./chart.js").Ink} */ this.ink = {};
    find("title").textContent = block.title;
    const end = block.ended ? `ended after ${block.steps} steps` : `cut off after ${block.steps} steps`;
    find("said").textContent = `The episode ${end}, with a return of ${block.return}.`;
    find("time").max = String(block.frames.length - 1);
    find("time").addEventListener("input", () => {
      this.pause();
      this.go(Number(find("time").value));
    });
    find("play").addEventListener("click", () => (this.running ? this.pause() : this.play()));
  }

  /** @param {import("./state.js").State} _ @param {import("./chart.js").Ink} ink */
  show(_, ink) {
    if (this.ink === ink) return;
    this.ink = ink;
    this.go(this.frame);
  }

  play() {
    if (this.frame >= this.block.frames.length - 1) this.frame = 0;
    const from = performance.now() - this.frame * this.block.seconds * 1000;
    const step = (/** @type {number} */ now) => {
      const frame = Math.floor((now - from) / 1000 / this.block.seconds);
      this.go(Math.max(0, Math.min(frame, this.block.frames.length - 1)));
      if (frame >= this.block.frames.length - 1) return this.pause();
      this.running = requestAnimationFrame(step);
    };
    this.running = requestAnimationFrame(step);
    this.find("play").textContent = "Pause";
  }

  pause() {
    cancelAnimationFrame(this.running);
    this.running = 0;
    this.find("play").textContent = "Play";
  }

  /** @param {number} frame */
  go(frame) {
    this.frame = frame;
    this.find("time").value = String(frame);
    this.find("time").setAttribute("aria-valuetext", `${(frame * this.block.seconds).toFixed(1)} seconds`);
    this.draw();
  }

  draw() {
    const { block, ink } = this;
    const canvas = this.find("sky");
    const ratio = window.devicePixelRatio || 1;
    const scale = canvas.clientWidth / WIDE;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(HIGH * scale * ratio);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.setTransform(ratio * scale, 0, 0, -ratio * scale, 0, HIGH * scale * ratio); // metres, y up
    context.lineJoin = "round";
    context.lineWidth = 1.5 / scale;
    const edge = WIDE / (block.ground.length - 1);
    const ground = block.ground.map((y, i) => /** @type {[number, number]} */ ([i * edge, y]));
    this.polygon(context, [[0, 0], ...ground, [WIDE, 0]], ink.tint, ink.soft);
    const pad = block.ground[Math.floor(block.ground.length / 2)];
    for (const x of FLAGS) {
      this.polygon(context, [[x, pad], [x, pad + 1.6]], "", ink.soft);
      this.polygon(context, [[x, pad + 1.6], [x, pad + 1.25], [x + 0.8, pad + 1.42]], ink.boltzmann, "");
    }
    const flown = block.frames.slice(0, this.frame + 1);
    const path = flown.map(([x, y]) => /** @type {[number, number]} */ ([x / block.fine, y / block.fine]));
    context.globalAlpha = 0.4;
    this.line(context, path, ink.soft);
    context.globalAlpha = 1;
    const frame = block.frames[this.frame];
    const [down, action] = frame.slice(9);
    [1, 2].forEach((leg) => {
      const colour = down & leg ? ink.mellowmax : ink.card;
      this.polygon(context, this.placed(frame.slice(3 * leg, 3 * leg + 3), block.leg), colour, ink.text);
    });
    const hull = frame.slice(0, 3);
    if (FLAMES[action]) this.polygon(context, this.placed(hull, FLAMES[action]), ink.boltzmann, "");
    this.polygon(context, this.placed(hull, block.hull), ink.card, ink.text);
  }

  /**
   * The points of a body where it is.
   * @param {number[]} at x, y and angle, in steps
   * @param {[number, number][]} points
   * @returns {[number, number][]}
   */
  placed(at, points) {
    const [x, y, angle] = at.map((step) => step / this.block.fine);
    const [sin, cos] = [Math.sin(angle), Math.cos(angle)];
    return points.map(([right, up]) => [x + cos * right - sin * up, y + sin * right + cos * up]);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {[number, number][]} points
   * @param {string} fill
   * @param {string} stroke
   */
  polygon(context, points, fill, stroke) {
    context.beginPath();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    if (fill) context.fillStyle = fill, context.fill();
    if (stroke) context.strokeStyle = stroke, context.stroke();
  }

  /** @param {CanvasRenderingContext2D} context @param {[number, number][]} points @param {string} stroke */
  line(context, points, stroke) {
    context.beginPath();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.strokeStyle = stroke;
    context.stroke();
  }
}
