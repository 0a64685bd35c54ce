/** Numbers that are changed where they stand: dragged sideways, or with the arrow keys. */

import { clip } from "./state.js";

/**
 * A thousandth, or of a large number a thousandth of its power of ten.
 * @param {number} value
 */
const stepOf = (value) => 0.001 * 10 ** Math.max(0, Math.ceil(Math.log10(Math.abs(value) || 1)));
const KEYS = /** @type {{[key: string]: number}} */ ({
  ArrowRight: 1,
  ArrowUp: 1,
  ArrowLeft: -1,
  ArrowDown: -1,
  PageUp: 20,
  PageDown: -20,
});

/**
 * @param {HTMLElement} element with `role="slider"`
 * @param {[number, number]} limits
 * @param {(value: number) => void} change while it moves
 * @param {() => void} done when a gesture has ended
 * @returns {(value: number) => void} to show a value
 */
export function scrubbed(element, limits, change, done) {
  let now = 0;
  /** @type {{x: number, value: number} | null} */
  let grip = null;
  element.setAttribute("aria-valuemin", String(limits[0]));
  element.setAttribute("aria-valuemax", String(limits[1]));
  const set = (/** @type {number} */ value) => {
    const rounded = Number(clip(value, ...limits).toFixed(5));
    if (rounded !== now) change(rounded);
  };
  element.addEventListener("pointerdown", (event) => {
    grip = { x: event.clientX, value: now };
    element.setPointerCapture(event.pointerId);
    element.focus({ preventScroll: true });
  });
  element.addEventListener("pointermove", (event) => {
    if (grip) set(grip.value + stepOf(grip.value) * Math.round(event.clientX - grip.x));
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    element.addEventListener(kind, () => {
      if (grip && grip.value !== now) done();
      grip = null;
    });
  }
  element.addEventListener("keydown", (event) => {
    const ends = /** @type {{[key: string]: number}} */ ({ Home: Math.max(0, limits[0]), End: Math.min(1, limits[1]) });
    if (event.key in KEYS) set(now + stepOf(now) * KEYS[event.key]);
    else if (event.key in ends) set(ends[event.key]);
    else return;
    event.preventDefault();
    done();
  });
  return (value) => {
    now = value;
    element.textContent = String(Number(value.toFixed(5))).replace("-", "\u2212");
    element.setAttribute("aria-valuenow", String(value));
  };
}
