import { priceClassOf } from '../bill.ts'
import { reported } from '../deviants.ts'
import { isObject, type JsonObject } from '../json.ts'
import { hashOf } from '../random.ts'
import { tokensOf } from '../tokens.ts'
import type { Asked, Reply, Upstream } from '../upstream.ts'

const DEFAULT_MODEL = 'sandbox-rerank'
/** Whichever of these is given; vendors differ. */
const INSTRUCTIONS = ['instruction', 'instruct', 'query_instruction']
const DOCUMENTS_LIMIT = 10_000
/** Words of the query that are looked for, and how far into a document. */
const WORDS_LIMIT = 32
const SEARCHED_CHARACTERS = 4096
/** What the words that a document shares with the query weigh; the rest of its score is chance. */
const WEIGHT_OF_WORDS = 0.9

type Question = {
  readonly model: string
  readonly query: string
  /** Read with each document. */
  readonly instruction: string
  readonly documents: readonly string[]
  readonly topN: number
  readonly returnsDocuments: boolean
}

export const rerank: Upstream = {
  name: 'rerank',
  methodOf: () => 'POST',
  credentials: [{ header: 'authorization', scheme: 'bearer' }],
  has: (path) => path === '/v1/rerank',
  answer(asked) {
    const question = questionIn(asked.body)
    return 'wrong' in question ? unprocessable(question.wrong) : ranking(question, asked)
  },
  errorBody: (_status, message) => ({ detail: message }),
}

function ranking(question: Question, { seed, deviance }: Asked): Reply {
  const { model, query, instruction, documents, topN, returnsDocuments } = question
  const words = wordsOf(query)
  const scored = documents.map((text, index) => ({ index, relevance_score: scoreOf(text, words, query, seed), text }))
  scored.sort((one, other) => other.relevance_score - one.relevance_score)
  const results = scored
    .slice(0, topN)
    .map(({ index, relevance_score, text }) =>
      returnsDocuments ? { index, relevance_score, document: { text } } : { index, relevance_score },
    )
  const tokens = tokensOf(query, ...documents) + tokensOf(instruction) * documents.length
  const told = reported(tokens, deviance.reportedTimes)
  const usage = { total_tokens: told, prompt_tokens: told }
  const bill = { price_class: priceClassOf(model), input: tokens }
  return { status: 200, body: { model, object: 'list', usage, results }, tokens, isBilled: true, bill }
}

/** From the query, the document and the seed alone, so that neither order nor company changes a document's score. */
function scoreOf(text: string, words: readonly string[], query: string, seed: number): number {
  const chance = hashOf(seed, query, text) / 0x1_0000_0000
  if (words.length === 0) return Number(chance.toFixed(6))
  const searched = text.slice(0, SEARCHED_CHARACTERS).toLowerCase()
  const alike = words.map((word) => likeness(word, searched)).reduce((sum, one) => sum + one, 0)
  const shared = alike / words.length
  return Number((shared * WEIGHT_OF_WORDS + chance * (1 - WEIGHT_OF_WORDS)).toFixed(6))
}

/** What a word brings to mind, so that a first try by hand reads as if somebody had understood it. */
const MEANINGS: Readonly<Record<string, readonly string[]>> = {
  animal: ['fox', 'snail', 'hare', 'dog', 'cat', 'horse', 'bird'],
  quick: ['fox', 'hare', 'horse', 'fast'],
  fast: ['fox', 'hare', 'horse', 'quick'],
  slow: ['snail', 'tortoise'],
}
const WEIGHT_OF_MEANING = 0.5

function likeness(word: string, searched: string): number {
  if (searched.includes(word)) return 1
  const brought = Object.hasOwn(MEANINGS, word) ? MEANINGS[word] : undefined
  return brought?.some((one) => searched.includes(one)) ? WEIGHT_OF_MEANING : 0
}

function wordsOf(query: string): string[] {
  const words =
    query
      .slice(0, SEARCHED_CHARACTERS)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  return words.slice(0, WORDS_LIMIT)
}

function questionIn(body: unknown): Question | { readonly wrong: string } {
  if (!isObject(body)) return { wrong: 'body' }
  const { model = DEFAULT_MODEL, query, top_n: topN, return_documents: returnsDocuments = true } = body
  if (typeof model !== 'string') return { wrong: 'model' }
  if (typeof query !== 'string' || query === '') return { wrong: 'query' }
  const documents = textsIn(body.documents)
  if (documents === undefined || documents.length === 0) return { wrong: 'documents' }
  if (topN !== undefined && topN !== null && !(Number.isSafeInteger(topN) && Number(topN) > 0))
    return { wrong: 'top_n' }
  if (typeof returnsDocuments !== 'boolean') return { wrong: 'return_documents' }
  const instruction = INSTRUCTIONS.map((name) => body[name]).find((text) => typeof text === 'string') ?? ''
  return {
    model,
    query,
    instruction: String(instruction),
    documents,
    topN: Number(topN ?? documents.length),
    returnsDocuments,
  }
}

function textsIn(documents: unknown): string[] | undefined {
  if (!Array.isArray(documents) || documents.length > DOCUMENTS_LIMIT) return undefined
  const texts: string[] = []
  for (const document of documents) {
    const text: unknown = isObject(document) ? document.text : document
    if (typeof text !== 'string') return undefined
    texts.push(text)
  }
  return texts
}

function unprocessable(field: string): Reply {
  const loc = field === 'body' ? ['body'] : ['body', field]
  const body: JsonObject = { detail: [{ type: 'value_error', loc, msg: `${field} is missing or not valid` }] }
  return { status: 422, body, tokens: 0, isBilled: false }
}
