/** Random numbers from a seed, so that a link shows the same again (Steele and Vigna's SplitMix). */

/** @param {number} seed @returns {() => number} numbers in [0, 1) */
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4294967296;
  };
}
