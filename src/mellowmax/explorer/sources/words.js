/** What is seen, in words. */

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./state.js").State} State */
/** @typedef {(string | {strong: string})[]} Words */

const COUNTS = ["no", "one", "two", "three"];

/**
 * A parameter with two digits behind the point, and more where it has them.
 * @param {number} x
 */
export function parameter(x) {
  const exact = Number(x.toFixed(4));
  return Number(exact.toFixed(2)) === exact ? exact.toFixed(2) : String(exact);
}

/** @param {number} x */
export function value(x) {
  return x.toFixed(3).replace("-", "\u2212");
}

/** @param {number} n */
export function count(n) {
  return `${COUNTS[n] ?? n} fixed point${n === 1 ? "" : "s"}`;
}

/**
 * The sentence of the page.
 * @param {Scene} boltzmann
 * @param {Scene} mellowmax
 * @param {State} state
 * @param {number | null} before the value at which a loop began
 * @returns {Words}
 */
export function sentence(boltzmann, mellowmax, state, before) {
  return [...ofBoltzmann(boltzmann, state, before), " ", ...ofMellowmax(mellowmax)];
}

/** @param {Scene} scene @param {State} state @param {number | null} before @returns {Words} */
function ofBoltzmann(scene, state, before) {
  const { points, end, path, place } = scene;
  const now = end < 0 ? null : points[end].value;
  if (before !== null && now !== null && place.window) {
    const fold = place.window.high.toFixed(2);
    const back = `β went up through the fold at ${fold} and came back to ${parameter(state.beta)}. `;
    if (Math.abs(now - before) < 1e-6) return [back, `V is ${value(now)}, as it was.`];
    return [back, { strong: "The values did not return" }, `: V was ${value(before)}, and is ${value(now)}.`];
  }
  const beginning = `At β = ${parameter(state.beta)} planning with Boltzmann’s softmax has `;
  const head = [beginning, { strong: count(points.length) }];
  if (now === null) return [...head, ". Sweeps from here do not settle."];
  if (points.length === 1) {
    return [...head, `: from every start sweeps end at V = ${value(now)}${sweeps(scene, state)}.`];
  }
  const stable = points.filter((point) => point.stable);
  const kinds =
    stable.length === 2 ? "two attract, one repels" : `${COUNTS[stable.length]} of them attract${stable.length === 1 ? "s" : ""}`;
  const ends = stable.map((point) => value(point.value)).join(" or ");
  const many = path.sweeps.toLocaleString("en");
  const start = state.at
    ? `Going on from where it was, it ends at ${value(now)}`
    : `From the cross it ends at ${value(now)}${path.settled ? `, after ${many} sweeps` : ""}`;
  return [...head, `: ${kinds}. Where you end depends on where you start: at V = ${ends}. ${start}.`];
}

/** @param {Scene} scene @param {State} state */
function sweeps({ path }, state) {
  if (state.at) return "";
  const many = path.sweeps.toLocaleString("en");
  return path.settled ? `, from the cross after ${many}` : `, though from the cross not within ${many}`;
}

/** @param {Scene} scene @returns {Words} */
function ofMellowmax({ points, softmax }) {
  return [
    `Mellowmax at ω = ${parameter(softmax.parameter)} has `,
    { strong: "one" },
    `, V = ${value(points[0].value)}, from every start and at every ω.`,
  ];
}

/**
 * What a fixed point is like.
 * @param {import("./sweeps.js").FixedPoint} point
 */
export function pointWords(point) {
  const way = point.stable ? "attracts: sweeps nearby end here" : "repels: sweeps nearby leave it";
  return `V = ${value(point.value)}, slope of T ${point.slope.toFixed(4)}: ${way}.`;
}

/**
 * Where SARSA is, against the fixed points of planning.
 * @param {Scene} scene
 * @param {import("./sarsa.js").Sarsa} learner
 */
export function learnerWords(scene, learner) {
  const { points, softmax } = scene;
  const name = softmax.kind === "boltzmann" ? "Boltzmann" : "Mellowmax";
  const where = `Q(s₁, a) = ${value(learner.qa)}, Q(s₁, b) = ${value(learner.qb)}`;
  if (points.length < 3 || !learner.steps) return `${name}: ${where}.`;
  const share = (100 * learner.below) / learner.steps;
  const low = share > 0 && share < 1 ? share.toFixed(1) : share.toFixed(0);
  return `${name}: ${where}; ${low} % of the steps below the fixed point that repels.`;
}
