/** What Python has computed and written into the page, each kind in a section of its own. */

import { Landing } from "./landing.js";
import { ModelView } from "./model_view.js";
import { Taxi } from "./taxi.js";

/** @typedef {import("./state.js").State} State */
/**
 * @typedef {{change: (part: Partial<State>) => void, done: (gesture: string) => void, still: () => boolean}} Hands
 */

const SCHEMA = 1;
/**
 * @type {{[kind: string]: {home: string, view: new (home: HTMLElement, block: any, hands: Hands) => {show: (state: State, ink: import("./chart.js").Ink) => void}}}}
 */
const KINDS = {
  taxi: { home: "gallery", view: Taxi },
  landing: { home: "gallery", view: Landing },
  model: { home: "own", view: ModelView },
};

/**
 * A section for each block that is known.
 * @param {any[]} blocks @param {Hands} hands
 */
export function showGallery(blocks, hands) {
  const known = blocks.filter((block) => block.schema === SCHEMA && block.kind in KINDS);
  const views = known.map((block) => {
    const { home, view } = KINDS[block.kind];
    const section = document.createElement("section");
    section.className = `panel ${block.kind}`;
    const template = /** @type {HTMLTemplateElement} */ (document.getElementById(`${block.kind}-view`));
    section.append(template.content.cloneNode(true));
    /** @type {HTMLElement} */ (document.getElementById(home)).append(section);
    return new view(section, block, hands);
  });
  return {
    show: (/** @type {State} */ state, /** @type {import("./chart.js").Ink} */ ink) => {
      for (const view of views) view.show(state, ink);
    },
  };
}
