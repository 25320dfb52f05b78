import type { Random } from '../../sandbox/src/random.ts'
import { CALLS, type Call, FREE, LINKED, SCARCE, type Told } from './installation.ts'

/** Random calls of all operations, and what the answer to one is worth by the published price list. */
export type Made = Call & {
  readonly operation: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether it must be refused before anything is held. */
  readonly isRefused: boolean
}

type Words = readonly [string, ...string[]]

const RESELLER = {
  creator_search_insights_videos: 1_450_000n,
  search_word_suggestion: 1_450_000n,
  tag_detail: 1_450_000n,
  user_stories: 2_900_000n,
}

/** What models cost a token, in nanos: the sandbox's. None of these calls asks for a cache. */
const MODELS = {
  chat_completions: { input: 500n, output: 2_000n, names: ['prompt_tokens', 'completion_tokens'] },
  responses: { input: 500n, output: 2_000n, names: ['input_tokens', 'output_tokens'] },
  messages: { input: 500n, output: 2_000n, names: ['input_tokens', 'output_tokens'] },
  embeddings: { input: 100n, output: 0n, names: ['prompt_tokens', 'none'] },
  embed_content: { input: 100n, output: 0n, names: ['promptTokenCount', 'none'] },
  batch_embed_contents: { input: 100n, output: 0n, names: ['promptTokenCount', 'none'] },
} as const

/** Whose price list stands here. What an operation costs that is not among them, its own test says. */
const KNOWN: ReadonlySet<string> = new Set([
  ...[...Object.keys(MODELS), ...Object.keys(RESELLER), 'rerank', 'post_comments', 'tweet_quotes'],
  ...['financial_metrics_snapshot', 'website_traffic_engagement'],
])
const OPERATIONS = Object.keys(CALLS).filter(
  (id) => KNOWN.has(id) && !FREE.has(id) && !SCARCE.has(id) && !LINKED.has(id),
) as unknown as Words
/** What can become of any answer; most are answered well. */
const ANY: Words = [
  'status=200',
  'status=201',
  'status=400',
  'status=401',
  'status=402',
  'status=403',
  'status=404',
  'status=409',
  'status=422',
  'status=429',
  'status=500',
  'status=503',
  'status=529',
  'status=302',
  'status=204',
  'garbage',
  'html',
  'empty',
  'chunked',
  'delay=20',
  'dup-headers',
  'content-type=text/plain',
  'continue=3',
  'truncate',
  'close-early',
  'reset=before-headers',
  'reset=in-body',
  'wrong-length=-7',
  'slow-first-byte=10',
  'retry-after=3',
]
const OWN: Readonly<Record<string, Words>> = {
  rerank: [
    'no-usage',
    'usage=string',
    'usage=huge',
    'usage=-1',
    'usage=1.5',
    'usage=null',
    'unsorted',
    'tokens=0',
    'tokens=1',
    'tokens=77',
    'tokens=5000',
  ],
  reseller: ['code=200', 'code=400', 'code=500', 'code=0', 'code-as-string'],
  post_comments: ['success=false', 'success=true'],
  tweet_quotes: ['success=false', 'success=true'],
}

export function makeRandomCall(random: Random): Made {
  const operation = random.pick(OPERATIONS)
  const words = wordsFor(operation, random)
  const { path, body } = CALLS[operation]?.(words) ?? { path: '' }
  const made = { operation, path, ...(body !== undefined && { body }), headers: {}, isRefused: false }
  if (random.chance(0.92)) return made
  return { ...made, ...refusal(operation, path, random), isRefused: true }
}

function wordsFor(operation: string, random: Random): string {
  const words: string[] = []
  const own = OWN[operation] ?? (/^(creator|search|tag|user)/.test(operation) ? OWN.reseller : undefined)
  if (operation === 'rerank' && random.chance(0.7)) words.push(`tokens=${random.between(1, 120)}`)
  if (own !== undefined && random.chance(0.3)) words.push(random.pick(own))
  if (random.chance(0.25)) words.push(random.pick(ANY))
  return words.map((word) => `sandbox:${word}`).join(' ')
}

/** One of the ways in which a request is answered without being sent. */
function refusal(operation: string, path: string, random: Random): Partial<Made> {
  const ways: readonly [Partial<Made>, ...Partial<Made>[]] = [
    { headers: { 'x-farebox-cost-mode': 'quote' } },
    { headers: { 'x-farebox-max-cost-usd': '0.000000000' } },
    { headers: { 'x-farebox-max-cost-usd': 'much' } },
    { headers: { 'idempotency-key': 'not visible' } },
    operation === 'rerank' ? { body: { query: '' } } : { path: `${path.split('?')[0]}/nothing` },
  ]
  return random.pick(ways)
}

/** Which are about our account, so that the caller gets an answer of ours and pays nothing. */
const OURS: ReadonlySet<number> = new Set([429, 502, 503])

type Tokens = { readonly input_tokens: bigint; readonly output_tokens: bigint }

const isSuccess = (status: number) => status >= 200 && status < 300

const usageIn = ({ usage, usageMetadata = usage }: Told['json']) => usageMetadata

/** Whether a model gave something that does not say what it used, so that it was counted. */
export function isCounted({ operation }: Made, { status, json, text }: Told): boolean {
  return operation in MODELS && isSuccess(status) && text !== '' && usageIn(json) === undefined
}

/** By the price list and by what the caller was given, in nanos; of what was counted, by the count. */
export function costOfAnswer(made: Made, told: Told, counted: Tokens): bigint {
  const { operation, body } = made
  const { status, json } = told
  if (typeof Object(json.error).code === 'string' && OURS.has(status)) return 0n
  switch (operation) {
    case 'chat_completions':
    case 'responses':
    case 'messages':
    case 'embeddings':
    case 'embed_content':
    case 'batch_embed_contents': {
      const { input, output, names } = MODELS[operation]
      if (isCounted(made, told)) return input * counted.input_tokens + output * counted.output_tokens
      const [read, written] = names.map((name) => BigInt(Object(usageIn(json))[name] ?? 0n))
      return isSuccess(status) ? input * (read ?? 0n) + output * (written ?? 0n) : 0n
    }
    case 'rerank':
      return status === 200 ? least(50n * BigInt(Object(json.usage).total_tokens), 50n * mostTokens(body)) : 0n
    case 'post_comments':
      return json.success === true ? 1_880_000n : 0n
    case 'tweet_quotes':
      return status === 200 && json.status === 'success' ? 3_000_000n : 0n
    case 'financial_metrics_snapshot':
      return status === 200 && Object(json.snapshot).ticker !== undefined ? 10_000_000n : 0n
    case 'website_traffic_engagement':
      // A metric a month, for three months.
      return status === 200 && Array.isArray(json.data) ? 2_000_000n * BigInt(json.data.length) : 0n
    default:
      return json.code === 200 ? (RESELLER[operation as keyof typeof RESELLER] ?? -1n) : 0n
  }
}

/** No tokenizer makes more of a request. */
function mostTokens(body: unknown): bigint {
  const { query, documents } = body as { query: string; documents: readonly string[] }
  return BigInt(documents.reduce((sum, text) => sum + query.length + text.length + 16, 0))
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
