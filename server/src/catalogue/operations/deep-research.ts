import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { defineOperation } from '../operation.ts'
import { perCall, type Reply } from '../price.ts'

const isGiven = ({ status }: Reply) => status >= 200 && status < 300

/** Its definition is not public: request and answer pass through as they are. */
export const deepResearch = defineOperation({
  id: 'deep_research',
  summary: 'Search the web in depth and write up what was found',
  asks: `research investigate web internet online report sources citations cite browse google look up find out
    thorough study topic background literature latest news current events market analysis competitors fact check
    in-depth comprehensive`,
  example: { query: 'Why is the sea salty?' },
  category: 'models',
  isHighCost: true,
  method: 'POST',
  path: '/v1/{deep_research}',
  dialect: 'openai',
  limits: ['concurrency', 'deep_research'],
  quotable: true,
  definition: 'pending',
  attempts: { requests: 1, refreshes: 0 },
  input: z.looseObject({}),
  output: z.unknown(),
  price: {
    ...perCall({ unitPrice: rational(usd('0.10')), isCharged: isGiven }),
    // Whatever form the caller has asked for: nothing of the body has to be read.
    measure: (reply) => ({ units: isGiven(reply) ? 1n : 0n }),
  },
  upstream: {
    slot: 'deep_research',
    path: '/{deep_research_upstream}',
    adapter: 'pass_through',
    credentialHeader: 'authorization',
    totalMs: 600_000,
    maxBodyBytes: 16 * 1_048_576,
  },
})
