/** What requests for vectors have in common, in whatever protocol they came. */

export const INPUTS_MOST = 2_048

/** What vectors have where the request does not say it: the longest that are sold widely. One with more takes more room as it comes. */
const DIMENSIONS_USUAL = 4_096
const DIMENSIONS_MOST = 65_536
/** Around a vector, and around them all. */
const VECTOR_OVERHEAD_BYTES = 256
const REPLY_OVERHEAD_BYTES = 16_384

/** The room that a reply takes with so many vectors, each of numbers of so many bytes. */
export function bytesOfVectors(count: number, dimensions: unknown, bytesOfNumber: number): number {
  const isSaid = typeof dimensions === 'number' && dimensions >= 1 && dimensions <= DIMENSIONS_MOST
  const numbers = isSaid ? Math.ceil(dimensions) : DIMENSIONS_USUAL
  return REPLY_OVERHEAD_BYTES + count * (VECTOR_OVERHEAD_BYTES + numbers * bytesOfNumber)
}
