/** A canvas with a frame, two scales, ticks and the colours of the page. */

/** @typedef {[number, number]} Range */
/** @typedef {{[name: string]: string}} Ink */
/** @typedef {{left: number, right: number, top: number, bottom: number}} Margin */

const NAMES = ["page", "card", "text", "soft", "line", "tint", "boltzmann", "mellowmax", "low", "high", "window", "sum", "sparse", "inverse"];
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

/**
 * The present colours of the style sheet: light, dark, or on paper.
 * @returns {Ink}
 */
export function readInk() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/**
 * Round numbers in a range, about as many as `count`.
 * @param {Range} range @param {number} count
 */
export function ticks([low, high], count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((one) => one >= raw) ?? 10 * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
}

/**
 * A number as a tick shows it.
 * @param {number} x
 */
export function plain(x) {
  return String(Number(x.toPrecision(6))).replace("-", "\u2212");
}

export class Chart {
  /** @param {HTMLCanvasElement} canvas @param {Partial<Margin>} margin */
  constructor(canvas, margin = {}) {
    this.canvas = canvas;
    this.margin = { left: 46, right: 14, top: 26, bottom: 34, ...margin };
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.width = 0;
    this.height = 0;
    this.blank = true;
    /** @type {Range} */ this.xs = [0, 1];
    /** @type {Range} */ this.ys = [0, 1];
    /** @type {Ink} */ this.ink = {};
    this.frame = { x: 0, y: 0, width: 1, height: 1 };
  }

  /** Make the canvas as fine as it is large on the page. It is asked for here alone: that takes time. */
  measure() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.blank = true;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /**
   * Clear the canvas and set the scales.
   * @param {Range} xs @param {Range} ys @param {Ink} ink
   */
  begin(xs, ys, ink) {
    if (!this.width) this.measure();
    this.blank = false;
    const { left, right, top, bottom } = this.margin;
    const frame = { x: left, y: top, width: this.width - left - right, height: this.height - top - bottom };
    Object.assign(this, { xs, ys, ink, frame });
    this.context.clearRect(0, 0, this.width, this.height);
    this.context.font = `12px ${FONT}`;
    this.context.lineJoin = "round";
    this.context.lineCap = "round";
  }

  /** @param {number} value */
  x(value) {
    const { x, width } = this.frame;
    return x + ((value - this.xs[0]) / (this.xs[1] - this.xs[0])) * width;
  }

  /** @param {number} value */
  y(value) {
    const { y, height } = this.frame;
    return y + height - ((value - this.ys[0]) / (this.ys[1] - this.ys[0])) * height;
  }

  /**
   * The values at a place of the canvas.
   * @param {number} px @param {number} py
   */
  at(px, py) {
    const { x, y, width, height } = this.frame;
    return {
      x: this.xs[0] + ((px - x) / width) * (this.xs[1] - this.xs[0]),
      y: this.ys[0] + ((y + height - py) / height) * (this.ys[1] - this.ys[0]),
    };
  }

  /**
   * Draw within the frame only.
   * @param {() => void} draw
   */
  inside(draw) {
    const { x, y, width, height } = this.frame;
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }

  /**
   * Ticks, their numbers and the names of the axes.
   * @param {string} xName
   * @param {string} yName
   * @param {{grid?: boolean, yTicks?: number}} options
   */
  axes(xName, yName, { grid = true, yTicks = 0 } = {}) {
    const { context, ink } = this;
    const { x, y, width, height } = this.frame;
    context.fillStyle = ink.soft;
    context.strokeStyle = ink.line;
    context.lineWidth = 1;
    context.textBaseline = "top";
    context.textAlign = "center";
    context.beginPath();
    for (const tick of ticks(this.xs, Math.max(2, Math.min(8, width / 70)))) {
      const px = Math.round(this.x(tick)) + 0.5;
      if (grid) context.moveTo(px, y), context.lineTo(px, y + height);
      context.fillText(plain(tick), px, y + height + 7);
    }
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of ticks(this.ys, yTicks || Math.max(2, Math.min(7, height / 44)))) {
      const py = Math.round(this.y(tick)) + 0.5;
      if (grid) context.moveTo(x, py), context.lineTo(x + width, py);
      context.fillText(plain(tick), x - 8, py);
    }
    context.stroke();
    context.fillStyle = ink.text;
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    context.fillText(yName, Math.max(2, x - 36), y - 10);
    context.textAlign = "right";
    context.fillText(xName, x + width, y + height + 31);
  }

  /**
   * A line through points of the canvas.
   * @param {[number, number][]} points
   * @param {{colour: string, width?: number, dash?: number[], alpha?: number}} look
   */
  line(points, { colour, width = 2, dash = [], alpha = 1 }) {
    const { context } = this;
    context.save();
    context.globalAlpha = alpha;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    points.forEach(([px, py], i) => (i ? context.lineTo(px, py) : context.moveTo(px, py)));
    context.stroke();
    context.restore();
  }

  /**
   * A fixed point: full where sweeps end, hollow where they leave.
   * @param {number} px
   * @param {number} py
   * @param {{colour: string, stable: boolean, lit?: boolean, size?: number}} look
   */
  dot(px, py, { colour, stable, lit = false, size = 6 }) {
    const { context, ink } = this;
    if (lit) {
      context.beginPath();
      context.arc(px, py, size + 7, 0, 2 * Math.PI);
      context.globalAlpha = 0.22;
      context.fillStyle = colour;
      context.fill();
      context.globalAlpha = 1;
    }
    context.beginPath();
    context.arc(px, py, stable ? size : size - 0.75, 0, 2 * Math.PI);
    context.fillStyle = stable ? colour : ink.card;
    context.fill();
    context.lineWidth = stable ? 1.5 : 2.25;
    context.strokeStyle = stable ? ink.card : colour;
    context.stroke();
  }

  /**
   * Where the agent is: a ring about a fixed point.
   * @param {number} px
   * @param {number} py
   * @param {string} colour
   */
  ring(px, py, colour) {
    const { context } = this;
    context.beginPath();
    context.arc(px, py, 11, 0, 2 * Math.PI);
    context.lineWidth = 2;
    context.strokeStyle = colour;
    context.stroke();
  }

  /**
   * Text that what is behind it leaves legible.
   * @param {string} text
   * @param {number} px
   * @param {number} py
   * @param {{colour?: string, align?: CanvasTextAlign, bold?: boolean}} look
   */
  label(text, px, py, { colour = this.ink.text, align = "left", bold = false } = {}) {
    const { context, ink } = this;
    context.save();
    context.font = `${bold ? "600 " : ""}12px ${FONT}`;
    const width = context.measureText(text).width;
    const low = align === "left" ? 0 : align === "right" ? width : width / 2;
    px = Math.min(Math.max(px, low + 3), this.width - width + low - 3);
    context.textAlign = align;
    context.textBaseline = "middle";
    context.lineWidth = 4;
    context.strokeStyle = ink.card;
    context.globalAlpha = 0.85;
    context.strokeText(text, px, py);
    context.globalAlpha = 1;
    context.fillStyle = colour;
    context.fillText(text, px, py);
    context.restore();
  }
}
