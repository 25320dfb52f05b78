/** Seconds of so many digits are thousands of years ahead, and milliseconds of our days. */
const MILLISECONDS = /^\d{12,14}$/

/** What to tell of a start that is written in milliseconds; undefined where it is not. */
export function millisecondsIn(start: unknown): string | undefined {
  if (typeof start !== 'string' || !MILLISECONDS.test(start)) return undefined
  return `start_time ${start} looks like milliseconds; give Unix seconds: ${BigInt(start) / 1_000n}.`
}
