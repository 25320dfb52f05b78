import { ANTHROPIC_RATE_HEADERS, ANTHROPIC_RATES, RATE_HEADERS } from '../limits/headers.ts'
import type { HeaderNames } from '../wording/header-names.ts'
import type { HeaderWords } from './route.ts'

const USD = { type: 'string', pattern: '^-?\\d+\\.\\d{9}$' }
const COUNT = { type: 'integer', minimum: 0 }

/** Headers of answers that every contract knows. */
export const PLAIN_HEADERS: Readonly<Record<string, HeaderWords>> = {
  'X-Request-ID': {
    description: 'The id of the request, by which it is looked up and reported.',
    schema: { type: 'string', format: 'uuid' },
  },
  'Retry-After': { description: 'Seconds to wait before the next attempt.', schema: COUNT },
  ...Object.fromEntries(
    RATE_HEADERS.map((name) => [
      name,
      {
        description: `${name.includes('Reset') ? 'When the window ends, in Unix seconds' : 'Of the tightest limit that applies'}: ${name.endsWith('Tokens') ? 'tokens' : 'requests'}.`,
        schema: COUNT,
      },
    ]),
  ),
  ...Object.fromEntries(
    ANTHROPIC_RATE_HEADERS.map((name) => [
      name,
      {
        description: `As ${ANTHROPIC_RATES[name]}${name.endsWith('-reset') ? ', in RFC 3339' : ''}.`,
        schema: name.endsWith('-reset') ? { type: 'string', format: 'date-time' } : COUNT,
      },
    ]),
  ),
}

/** And those that carry the word of the provider. */
export function headerWords(names: HeaderNames): Readonly<Record<string, HeaderWords>> {
  return {
    ...PLAIN_HEADERS,
    [names.cost]: { description: 'What the call was charged, in exact decimal USD.', schema: USD },
    [names.held]: {
      description: 'The most that the task can cost, held until it ends, in exact decimal USD.',
      schema: USD,
    },
    [names.taskCost]: {
      description: 'What the task was charged, once it has ended, in exact decimal USD.',
      schema: USD,
    },
    [names.balance]: { description: 'What the account has left to spend, in exact decimal USD.', schema: USD },
    [names.budget]: {
      description:
        "What is left of the key's budget, in exact decimal USD, where it has one and the call asked for it.",
      schema: USD,
    },
    [names.priceVersion]: { description: 'The version of the price that was applied.', schema: { type: 'string' } },
    [names.outputCap]: {
      description: 'The output limit that the call got because it named none.',
      schema: { type: 'integer', minimum: 1 },
    },
    [names.fittedLimit]: {
      description:
        'The output limit that the call got, because it was to fit and the one that it would have had did not.',
      schema: { type: 'integer', minimum: 1 },
    },
    [names.hold]: {
      description:
        'growing: the stream holds what it needs as it goes on, and ends at its limit where there is no more to hold.',
      schema: { type: 'string', enum: ['growing'] },
    },
    [names.upstreamModel]: {
      description: 'The model by the name that it has upstream; the answer has the one that was asked for.',
      schema: { type: 'string' },
    },
  }
}
