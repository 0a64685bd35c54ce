/**
 * Operators on the values of two actions, a and b, and the policies that attain them.
 *
 * With the gap `d = qa - qb`, Boltzmann's policy takes a with probability `1 / (1 + e^(-beta d))`.
 * Mellowmax is the mean plus `log(cosh(omega d / 2)) / omega`; its policy has Boltzmann's form with
 * an inverse temperature that, for two actions, is `2 atanh(log(cosh u) / u) / d`, `u = omega d / 2`.
 */

/** @typedef {{kind: "boltzmann" | "mellowmax", parameter: number}} Softmax */

/** @param {number} x */
export function logistic(x) {
  const small = Math.exp(-Math.abs(x));
  return (x >= 0 ? 1 : small) / (1 + small);
}

/**
 * `log(cosh x)`, without overflow or cancellation.
 * @param {number} x
 */
export function logCosh(x) {
  const size = Math.abs(x);
  if (size < 1) return Math.log1p(2 * Math.sinh(size / 2) ** 2);
  return size - Math.LN2 + Math.log1p(Math.exp(-2 * size));
}

/** @param {number} qa @param {number} qb @param {number} beta */
export function boltzmann(qa, qb, beta) {
  const d = qa - qb;
  const other = logistic(-Math.abs(beta * d)); // the probability of the action that is taken less
  return beta * d >= 0 ? qa - other * d : qb + other * d;
}

/** @param {number} qa @param {number} qb @param {number} omega */
export function mellowmax(qa, qb, omega) {
  const mean = (qa + qb) / 2;
  return omega === 0 ? mean : mean + logCosh((omega * (qa - qb)) / 2) / omega;
}

/** The free energy plus `log(2) / beta`. @param {number} qa @param {number} qb @param {number} beta */
export function logSumExp(qa, qb, beta) {
  return Math.max(qa, qb) + Math.log1p(Math.exp(-beta * Math.abs(qa - qb))) / beta;
}

/** @param {number} qa @param {number} qb @param {number} beta */
export function sparsemax(qa, qb, beta) {
  const d = Math.abs(qa - qb);
  const other = Math.max(0, (1 - beta * d) / 2); // the probability of the action that is taken less
  return Math.max(qa, qb) - other * d + (other * (1 - other)) / beta;
}

/** @param {number} qa @param {number} qb @param {number} eta */
export function resmax(qa, qb, eta) {
  const d = Math.abs(qa - qb);
  return Math.max(qa, qb) - d / (2 + eta * d);
}

/** The inverse temperature of mellowmax's policy. */
export function temperature(/** @type {number} */ qa, /** @type {number} */ qb, /** @type {number} */ omega) {
  const d = qa - qb;
  const u = Math.abs(omega * d) / 2;
  if (u < 1e-5) return omega / 2; // and the next term is `-omega u^2 / 12` of it
  const sign = Math.sign(omega);
  if (u < 1) return (sign * 2 * Math.atanh(logCosh(u) / u)) / Math.abs(d);
  const short = (Math.LN2 - Math.log1p(Math.exp(-2 * u))) / u; // 1 - log(cosh u) / u
  return (sign * Math.log((2 - short) / short)) / Math.abs(d);
}

/**
 * The value of a softmax.
 * @param {Softmax} softmax @param {number} qa @param {number} qb
 */
export function value(softmax, qa, qb) {
  const operator = softmax.kind === "boltzmann" ? boltzmann : mellowmax;
  return operator(qa, qb, softmax.parameter);
}

/**
 * How probably its policy takes a.
 * @param {Softmax} softmax @param {number} qa @param {number} qb
 */
export function policy(softmax, qa, qb) {
  const { kind, parameter } = softmax;
  const b = kind === "boltzmann" ? parameter : temperature(qa, qb, parameter);
  return logistic(b * (qa - qb));
}

/**
 * The derivative of the value by qa and by qb.
 * @param {Softmax} softmax
 * @param {number} qa
 * @param {number} qb
 */
export function gradient(softmax, qa, qb) {
  const { kind, parameter } = softmax;
  const weight = logistic(parameter * (qa - qb));
  if (kind === "mellowmax") return [weight, 1 - weight];
  const bend = parameter * weight * logistic(-parameter * (qa - qb)) * (qa - qb);
  return [weight + bend, 1 - weight - bend];
}
