/* Random numbers that depend on a seed and a count alone, so that a run can be played again from its address. */

/** A hash of 32 bits (the finaliser of MurmurHash3). */
function mixed(x) {
  let h = x | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The n-th number of a seed, uniform in [0, 1), of 32 bits. */
export function uniform(seed, n) {
  const first = mixed(Math.imul(seed, 0x9e3779b9) ^ 0x51ed270b);
  return mixed(first ^ mixed(Math.imul(n + 1, 0x9e3779b9) + first)) / 2 ** 32;
}
