/** The few functions of the normal and lognormal distributions that a plan needs. */

/**
 * Share of a standard normal above x. Chebyshev fit of erfc with a relative error under 1.2e-7 everywhere: a plan
 * multiplies thousands of factors close to one, so the tail must be computed directly, not as 1 minus a number.
 */
export function normalTail(x: number): number {
  const z = Math.abs(x) / Math.SQRT2;
  const t = 1 / (1 + 0.5 * z);
  const upper = 0.5 * t * Math.exp(-z * z + horner(ERFC, t));
  return x >= 0 ? upper : 1 - upper;
}

const ERFC = [
  0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368,
  -1.26551223,
];

/** Share of a standard normal below x. */
export const normalCdf = (x: number): number => normalTail(-x);

/**
 * The x below which a share `p` of a standard normal lies, for p in (0, 1); Acklam's fit, relative error under 1.2e-9.
 */
export function normalQuantile(p: number): number {
  if (p > 0.5) return -normalQuantile(1 - p);
  if (p < 0.02425) {
    const q = Math.sqrt(-2 * Math.log(p));
    return horner(TAIL_UP, q) / horner(TAIL_DOWN, q);
  }
  const q = p - 0.5;
  return (q * horner(MIDDLE_UP, q * q)) / horner(MIDDLE_DOWN, q * q);
}

/** Coefficients from the highest power down. */
function horner(coefficients: readonly number[], x: number): number {
  let sum = 0;
  for (const c of coefficients) sum = sum * x + c;
  return sum;
}

const MIDDLE_UP = [
  -3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.38357751867269e2, -3.066479806614716e1,
  2.506628277459239,
];
const MIDDLE_DOWN = [
  -5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1, 1,
];
const TAIL_UP = [
  -7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734, 4.374664141464968,
  2.938163982698783,
];
const TAIL_DOWN = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1];

/** The sigma of a lognormal with this median and 95th percentile; 0 when they are equal or reversed. */
export const sigmaOf = (p50: number, p95: number): number =>
  p50 > 0 && p95 > p50 ? Math.log(p95 / p50) / 1.6448536269514722 : 0;

/** Mean and variance of max(floor, X), X lognormal with this median and sigma. */
export function momentsAbove(floor: number, median: number, sigma: number): { mean: number; variance: number } {
  if (median <= 0) return { mean: floor, variance: 0 };
  if (sigma <= 0) return { mean: Math.max(floor, median), variance: 0 };
  const d = floor > 0 ? Math.log(floor / median) / sigma : -Infinity;
  const below = d === -Infinity ? 0 : normalCdf(d);
  const mean = floor * below + median * Math.exp(sigma ** 2 / 2) * normalCdf(sigma - d);
  const square = floor ** 2 * below + median ** 2 * Math.exp(2 * sigma ** 2) * normalCdf(2 * sigma - d);
  return { mean, variance: Math.max(0, square - mean ** 2) };
}
