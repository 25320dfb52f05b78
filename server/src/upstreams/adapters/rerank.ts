import { z } from 'zod'
import { readOutline } from '../../protocols/json-outline.ts'
import type { Adapter } from './adapter.ts'
import { passThrough } from './pass-through.ts'

/** What an upstream is asked for where the caller names no model. */
export const DEFAULT_RERANK_MODEL = 'rerank'

const asked = z.looseObject({
  model: z.string().optional(),
  query: z.string(),
  documents: z.array(z.string()),
  top_n: z.int().optional(),
})

const answered = z.looseObject({
  model: z.string().optional(),
  results: z.array(z.looseObject({ index: z.int().nonnegative(), relevance_score: z.number() })),
  usage: z.looseObject({ total_tokens: z.int().nonnegative() }).optional(),
})

/** All results of as many documents as are taken, without the documents, which are ours; names as long as they may be. */
const RESULTS = {
  ...{ keptBytes: 4_128_768, mostBytes: 4_194_304, textBytes: 0, stringBytes: 256, numbersBytes: 64 },
  ...{ memberBytes: 4_096, depth: 64, turnSteps: 200_000 },
}

/**
 * The common form of a reranker. What comes back is put in order, and each document is the one that was sent: an upstream
 * may leave it out, cut it, or answer in an order of its own.
 */
export const rerank: Adapter = {
  ask({ input }) {
    const { model = DEFAULT_RERANK_MODEL, ...rest } = asked.parse(input)
    // Only what was priced is sent.
    return { query: '', body: Buffer.from(JSON.stringify({ model, ...rest })) }
  },
  readLarge: (body) => readOutline(body, RESULTS),
  answer(reply, request, tokens = 0) {
    if (reply.status !== 200) return passThrough.answer(reply, request)
    const { success, data } = answered.safeParse(reply.json)
    const { documents, top_n, model } = asked.parse(request.input)
    if (!success || data.results.some(({ index }) => index >= documents.length)) return undefined
    // One document is in the answer once, or the answer could be many times as large as what was sent.
    if (new Set(data.results.map(({ index }) => index)).size < data.results.length) return undefined
    const results = data.results
      .toSorted((a, b) => b.relevance_score - a.relevance_score)
      .slice(0, top_n ?? documents.length)
      .map(({ index, relevance_score }) => ({ index, relevance_score, document: { text: documents[index] } }))
    const body = {
      model: data.model ?? model ?? DEFAULT_RERANK_MODEL,
      results,
      // What is billed: not what the upstream says beyond the hold, and what we have counted where it says nothing.
      usage: { total_tokens: tokens },
    }
    return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  },
}
