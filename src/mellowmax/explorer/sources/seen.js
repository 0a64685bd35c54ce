/** Which charts are in view: while a hand moves, the others wait until it rests. */

/** @typedef {import("./chart.js").Chart} Chart */

const REST = 150; // milliseconds

export class Seen {
  /** @param {Chart[]} charts @param {() => void} draw called for those that have waited */
  constructor(charts, draw) {
    this.draw = draw;
    /** @type {Set<Element>} */
    this.hidden = new Set();
    this.waiting = 0;
    this.all = false;
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) this.hidden.delete(target);
        else this.hidden.add(target);
      }
    });
    for (const chart of charts) observer.observe(chart.canvas);
    addEventListener("beforeprint", () => this.catchUp());
  }

  /**
   * Is it to be drawn now?
   * @param {Chart} chart
   */
  shows(chart) {
    if (this.all || chart.blank || !this.hidden.has(chart.canvas)) return true;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.catchUp(), REST);
    return false;
  }

  /** Draw all of them. */
  catchUp() {
    clearTimeout(this.waiting);
    this.all = true;
    this.draw();
    this.all = false;
  }
}
