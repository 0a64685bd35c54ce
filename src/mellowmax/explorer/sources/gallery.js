/** What Python has computed and written into the page, each kind in a section of its own. */

/** @typedef {import("./state.js").State} State */
/** @typedef {{change: (part: Partial<State>) => void, done: (gesture: string) => void}} Hands */

/** @param {any[]} blocks @param {Hands} hands */
export function showGallery(blocks, hands) {
  return { show: (/** @type {State} */ state, /** @type {import("./chart.js").Ink} */ ink) => {} };
}
