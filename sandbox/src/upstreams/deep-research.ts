import { creditsBill } from '../bill.ts'
import { isObject, type JsonObject } from '../json.ts'
import { hashOf, Random } from '../random.ts'
import type { Upstream } from '../upstream.ts'
import { proseOfWords } from './models/prose.ts'

const ANSWER_WORDS = 40
const SOURCE_WORDS = 5
const QUERY_LIMIT = 4_096
/** A report takes its time. */
const DELAY_MS = 50

/** A search in depth. The vendor's own format is not public: this one is made up, and nothing may be built on it. */
export const deepResearch: Upstream = {
  name: 'deep_research',
  methodOf: () => 'POST',
  credentials: [{ header: 'authorization', scheme: 'bearer' }],
  has: (path) => path === '/search',
  answer({ body, seed }) {
    const query = isObject(body) ? body.query : undefined
    if (typeof query !== 'string' || query === '')
      return { status: 400, body: errorBody(400, 'query must be given'), tokens: null, isBilled: false }
    const random = new Random(hashOf(seed, 'deep research', query))
    return {
      status: 200,
      body: {
        id: random.hex(24),
        query: query.slice(0, QUERY_LIMIT),
        answer: proseOfWords(random, ANSWER_WORDS),
        sources: Array.from({ length: random.between(2, 4) }, () => sourceOf(random)),
      },
      tokens: null,
      isBilled: true,
      bill: creditsBill(1),
      delivery: { delayMs: DELAY_MS },
    }
  },
  errorBody,
}

function sourceOf(random: Random): JsonObject {
  return { url: `https://source-${random.digits(4)}.invalid/`, title: proseOfWords(random, SOURCE_WORDS) }
}

function errorBody(_status: number, message: string): JsonObject {
  return { error: { message } }
}
