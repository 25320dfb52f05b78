import { bytesOf } from './bound.ts'
import type { ModelAsk } from './protocol.ts'

/** What requests for vectors have in common, in whatever protocol they came. */

export const INPUTS_MOST = 2_048

/** What vectors have where the request does not say it: the longest that are sold widely. One with more takes more room as it comes. */
const DIMENSIONS_USUAL = 4_096
const DIMENSIONS_MOST = 65_536
/** Around a vector, and around them all. */
const VECTOR_OVERHEAD_BYTES = 256
const REPLY_OVERHEAD_BYTES = 16_384

/** What is counted of texts each of which has the context window for itself. None has more tokens than bytes. */
export function countable(
  texts: readonly string[],
  contextWindow: number,
  between = '\n',
): Pick<ModelAsk, 'inputText' | 'longInputs'> {
  const isLong = (text: string) => bytesOf(text) > contextWindow
  return {
    inputText: () => texts.filter((text) => !isLong(text)).join(between),
    longInputs: { texts: texts.filter(isLong), mostOfEach: contextWindow },
  }
}

/** The room that a reply takes with vectors of so many dimensions, each number of so many bytes. */
export function bytesOfVectors(dimensions: readonly unknown[], bytesOfNumber: number): number {
  const bytes = dimensions.map((said) => VECTOR_OVERHEAD_BYTES + numbersIn(said) * bytesOfNumber)
  return bytes.reduce((sum, more) => sum + more, REPLY_OVERHEAD_BYTES)
}

function numbersIn(said: unknown): number {
  const isSaid = typeof said === 'number' && said >= 1 && said <= DIMENSIONS_MOST
  return isSaid ? Math.ceil(said) : DIMENSIONS_USUAL
}
