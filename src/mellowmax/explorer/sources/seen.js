/** Which charts are in view: the others need not be drawn, until they come there. */

/** @typedef {import("./chart.js").Chart} Chart */

export class Seen {
  /** @param {Chart[]} charts @param {() => void} draw called when one comes into view that was not drawn */
  constructor(charts, draw) {
    /** @type {Set<Element>} */
    this.hidden = new Set();
    /** @type {Set<Element>} */
    this.stale = new Set();
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          if (isIntersecting) this.hidden.delete(target);
          else this.hidden.add(target);
        }
        if ([...this.stale].some((canvas) => !this.hidden.has(canvas))) draw();
      },
      { rootMargin: "40px" },
    );
    for (const chart of charts) observer.observe(chart.canvas);
    addEventListener("beforeprint", () => {
      this.hidden.clear();
      draw();
    });
  }

  /** Is it to be drawn now? @param {Chart} chart */
  shows(chart) {
    const hidden = this.hidden.has(chart.canvas);
    if (hidden) this.stale.add(chart.canvas);
    else this.stale.delete(chart.canvas);
    return !hidden;
  }
}
