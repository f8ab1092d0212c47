// The bounds of the ranges into which the scores of a ranking are divided for a chart: round numbers between the lowest and
// the highest score.

/** The most bounds. A chart has one bar more. */
const MOST = 11;
/** How far below the highest score ranges begin where scores reach zero, in powers of ten. */
const DEPTH = 6;
/** The multiples of powers of ten that are bounds of ranges which grow, the finest division first. */
const DIVISIONS = [[1, 2, 5], [1]];

/** A round number: a multiple of a power of ten. */
interface Round {
  digits: number;
  exponent: number;
}

const valueOf = ({ digits, exponent }: Round): number => Number(`${digits}e${exponent}`);

/**
 * Returns up to 11 bounds in ascending order, as the API takes them. Ranges have the same width, or grow by powers of ten
 * where most scores would be in one bar otherwise. No bound has more than `decimals` digits after the point.
 */
export function boundsOf(lowest: number, median: number, highest: number, decimals: number): string[] {
  // Of the two ends the one nearer to zero: there ranges that grow are narrow.
  const near = Math.abs(lowest) < Math.abs(highest) ? lowest : highest;
  const isSkewed = Math.abs(median - near) * 20 < highest - lowest;
  const growing = isSkewed ? growingBounds(lowest, highest, decimals) : [];
  const bounds = growing.length > 2 ? growing : evenBounds(lowest, highest, decimals);
  return bounds.map((bound) => valueOf(bound).toFixed(Math.max(-bound.exponent, 0)));
}

/** Returns the multiples of a round step, which is as small as the number of bounds allows. */
function evenBounds(lowest: number, highest: number, decimals: number): Round[] {
  const least = (highest - lowest) / (MOST - 1);
  let step = { digits: 1, exponent: -decimals };
  if (least > valueOf(step)) {
    const exponent = Math.floor(Math.log10(least));
    const digits = [1, 2, 5, 10].find((digits) => valueOf({ digits, exponent }) >= least) ?? 10;
    step = digits === 10 ? { digits: 1, exponent: exponent + 1 } : { digits, exponent };
  }
  const first = Math.floor(lowest / valueOf(step));
  const bounds: Round[] = [];
  let last = lowest;
  for (let index = 0; index <= MOST; index++) {
    const bound = { digits: (first + index) * step.digits, exponent: step.exponent };
    const value = valueOf(bound);
    // Numbers so large that adding a step changes nothing are left out.
    if (value > last && value <= highest) bounds.push(bound);
    last = Math.max(last, value);
  }
  return bounds;
}

/** Returns powers of ten, with numbers between them where there is room, on both sides of zero. */
function growingBounds(lowest: number, highest: number, decimals: number): Round[] {
  const far = Math.max(Math.abs(lowest), Math.abs(highest));
  const last = Math.floor(Math.log10(far));
  const reachesZero = lowest <= 0 && highest >= 0;
  const nearest = reachesZero ? last - DEPTH : Math.floor(Math.log10(Math.min(Math.abs(lowest), Math.abs(highest))));
  const first = Math.max(nearest, -decimals);
  const between = (skip: number, division: number[]): Round[] => {
    const sizes: Round[] = [];
    for (let exponent = first; exponent <= last; exponent += skip) {
      sizes.push(...division.map((digits) => ({ digits, exponent })));
    }
    const below = sizes.map(({ digits, exponent }) => ({ digits: -digits, exponent })).reverse();
    const all = [...below, { digits: 0, exponent: 0 }, ...sizes];
    return all.filter((bound) => valueOf(bound) > lowest && valueOf(bound) <= highest);
  };
  for (const division of DIVISIONS) {
    const bounds = between(1, division);
    if (bounds.length <= MOST) return bounds;
  }
  for (let skip = 2; ; skip++) {
    const bounds = between(skip, [1]);
    if (bounds.length <= MOST) return bounds;
  }
}
