import { z } from 'zod'
import { perMillion } from '../../kernel/money.ts'
import { inspectMembers } from '../member-table.ts'
import { defineOperation } from '../operation.ts'
import { countIn, memberOf, perToken } from '../price.ts'
import { RERANK } from './rerank-members.ts'

const input = z
  .looseObject({
    model: z.string().min(1).max(200).optional(),
    query: z.string().min(1),
    documents: z.array(z.string()).min(1).max(10_000),
    instruction: z.string().nullish(),
    top_n: z.int().positive().optional(),
  })
  .superRefine((members, context) => {
    const { refused } = inspectMembers(members, RERANK)
    if (refused !== undefined)
      context.addIssue({ code: 'custom', message: `"${refused.path}" ${refused.words}`, path: [] })
  })

type Input = z.output<typeof input>

/** Separators and the like that a reranker puts around each pair of query and document. */
const OVERHEAD_TOKENS = 16

/** Query and instruction are read once with each document, and no tokenizer makes more than one token of a byte. */
function tokensAtMost({ query, instruction, documents }: Input): number {
  const withEach = Buffer.byteLength(query) + Buffer.byteLength(instruction ?? '')
  return documents.reduce((sum, text) => sum + withEach + Buffer.byteLength(text) + OVERHEAD_TOKENS, 0)
}

/** Any so many of the documents hold no more than the longest. */
function costlyOf(request: Input) {
  const longest = request.documents.toSorted((a, b) => Buffer.byteLength(b) - Buffer.byteLength(a))
  const mostOf = (units: number) => tokensAtMost({ ...request, documents: longest.slice(0, units) })
  return { name: 'the number of documents', units: longest.length, mostOf }
}

type Count = (text: string) => Promise<number>

/** As upstreams bill it: query and instruction once with each document. */
async function tokensCounted({ query, instruction, documents }: Input, count: Count): Promise<number> {
  const texts = [query, instruction ?? '', documents.join('\n')]
  const [ofQuery = 0, ofInstruction = 0, ofDocuments = 0] = await Promise.all(texts.map(count))
  return (ofQuery + ofInstruction) * documents.length + ofDocuments
}

export const rerank = defineOperation<Input>({
  id: 'rerank',
  summary: 'Reorder documents by relevance to a query',
  asks: `rerank reorder re-order order sort rank ranking passages snippets documents chunks results candidates
    relevance relevant best match matches closest query rag retrieval which of these score scoring prioritise`,
  example: { query: 'a quick animal', documents: ['a snail', 'a fox'], top_n: 1 },
  category: 'models',
  method: 'POST',
  path: '/v1/rerank',
  dialect: 'openai',
  limits: ['tokens'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 1, refreshes: 0 },
  isBodyOnly: true,
  input,
  output: z.object({
    model: z.string(),
    results: z.array(
      z.object({ index: z.int(), relevance_score: z.number(), document: z.object({ text: z.string() }) }),
    ),
    usage: z.object({ total_tokens: z.int() }),
  }),
  price: perToken({
    unitPrice: perMillion('0.050'),
    most: tokensAtMost,
    expected: (request) => Math.ceil(tokensAtMost(request) / 4),
    costly: costlyOf,
    counted: tokensCounted,
    evidence: ({ status, json }) => (status === 200 ? countIn(memberOf(json, 'usage', 'total_tokens')) : 0),
  }),
  upstream: {
    slot: 'rerank',
    path: '/v1/rerank',
    adapter: 'rerank',
    credentialHeader: 'authorization',
    totalMs: 60_000,
    // A request has a mebibyte as a rule, and an answer repeats its documents at worst.
    maxBodyBytes: 8 * 1_048_576,
  },
})
