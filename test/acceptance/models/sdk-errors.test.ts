import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { isId } from '../../../server/src/kernel/ids.ts'
import { chargesOf, makeCustomer, startInstallation } from '../installation.ts'
import type { Client, Failure, Question } from './sdk-client.ts'
import { CLIENTS, WAYS } from './sdk-clients.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)

const AT_ONCE = { concurrency: 4 }
const customer = await makeCustomer(pool)
const poor = await makeCustomer(pool, { money: 1_000n })

const QUESTION: Question = { model: 'sandbox/echo', turns: [{ by: 'user', text: 'hello' }] }

type Refusal = {
  readonly name: string
  readonly question?: Partial<Question>
  readonly secret?: string
  readonly status: number
  /** Ours; undefined where the upstream's own words are passed on. */
  readonly code: string | undefined
  readonly type: Readonly<Record<Client['protocol'], string>>
  readonly className: string
  readonly retryAfter?: string
  readonly reaches?: 'the upstream'
}

/** One vendor has two protocols, and one way to tell of errors. */
const openaiType = (type: string) => ({ openai: type, openai_responses: type })

/** Two vendors have the same words, and the third has those of another family. */
const words = (type: string, gemini: string): Refusal['type'] => ({ ...openaiType(type), anthropic: type, gemini })

const REFUSALS: readonly Refusal[] = [
  {
    name: '404 a model that there is not',
    question: { model: 'sandbox/nobody' },
    status: 404,
    code: 'model_not_found',
    type: { ...openaiType('invalid_request_error'), anthropic: 'not_found_error', gemini: 'NOT_FOUND' },
    className: 'NotFoundError',
  },
  {
    name: '401 a wrong key',
    secret: 'fb_test_wrong',
    status: 401,
    code: 'invalid_credential',
    type: words('authentication_error', 'UNAUTHENTICATED'),
    className: 'AuthenticationError',
  },
  {
    name: '402 a balance that does not cover the call',
    secret: poor.secret,
    status: 402,
    code: 'insufficient_balance',
    type: words('billing_error', 'RESOURCE_EXHAUSTED'),
    className: 'APIError',
  },
  {
    name: "429 the upstream's limit",
    question: { model: 'sandbox/429' },
    status: 429,
    code: 'upstream_rate_limit',
    type: words('rate_limit_error', 'RESOURCE_EXHAUSTED'),
    className: 'RateLimitError',
    retryAfter: '7',
    reaches: 'the upstream',
  },
  {
    name: '400 a limit that the model does not have',
    question: { limit: 64_001 },
    status: 400,
    code: 'invalid_request',
    type: words('invalid_request_error', 'INVALID_ARGUMENT'),
    className: 'BadRequestError',
  },
  {
    name: '400 that the upstream told',
    question: { turns: [{ by: 'user', text: 'sandbox:status=400' }] },
    status: 400,
    code: undefined,
    type: words('invalid_request_error', 'INVALID_ARGUMENT'),
    className: 'BadRequestError',
    reaches: 'the upstream',
  },
]

async function failureOf(client: Client, asking: Promise<unknown>): Promise<Failure> {
  const thrown = await asking.then(
    () => assert.fail('the call did not fail'),
    (error: unknown) => error,
  )
  return client.failureOf(thrown)
}

const isAi = ({ name }: Client) => name.startsWith('ai ')

/** Some libraries have one class for all errors. */
function classOf(client: Client, className: string): string {
  if (isAi(client)) return 'AI_APICallError'
  return client.protocol === 'gemini' ? 'ApiError' : className
}

for (const { name, question, secret = customer.secret, reaches, ...expected } of REFUSALS) {
  describe(`MODEL-1 MODEL-2 ${name}`, AT_ONCE, () => {
    for (const { client, streamed, title } of WAYS) {
      it(`${title}: is an error of the library's own, with status, code, type and request id`, async () => {
        const asking = client.ask({ url, secret }, { ...QUESTION, ...question }, { streamed })
        const failure = await failureOf(client, asking)
        assert.equal(failure.className, classOf(client, expected.className))
        assert.equal(failure.status, expected.status)
        if (expected.code !== undefined) assert.equal(failure.code, expected.code)
        assert.equal(failure.type, expected.type[client.protocol])
        assert.equal(failure.retryAfter, expected.retryAfter)
        const { requestId = '' } = failure
        // Where it is in no word of the upstream's, the headers alone have it.
        if (client.hidesHeadersOfErrors && expected.code === undefined) return assert.equal(requestId, '')
        assert.ok(isId(requestId))
        const asked = (await sandbox.journal()).filter(({ request_id }) => request_id === requestId)
        assert.equal(asked.length, reaches === undefined ? 0 : 1)
        const charged = (await chargesOf(pool, customer.accountId)).get(requestId) ?? 0n
        assert.equal(charged, 0n)
      })
    }
  })
}

describe('MODEL-2 an error in the middle of a stream', AT_ONCE, () => {
  const cases = [
    {
      name: 'ours, of an upstream that went without a word',
      model: 'sandbox/cut-mid-stream',
      code: 'upstream_transport',
      type: { ...openaiType('server_error'), anthropic: 'api_error', gemini: 'UNAVAILABLE' },
      status: 502,
    },
    {
      name: "the upstream's own",
      model: 'sandbox/error-mid-stream',
      code: undefined,
      type: { ...openaiType('server_error'), anthropic: 'overloaded_error', gemini: 'UNAVAILABLE' },
      status: 503,
    },
  ]
  for (const { name, model, code, type, status } of cases)
    for (const client of CLIENTS) {
      it(`${client.name}: ${name}, is an error of the library's own after the text that came`, async () => {
        let text = ''
        const onText = (piece: string) => {
          text += piece
        }
        const to = { url, secret: customer.secret }
        const failure = await failureOf(client, client.ask(to, { ...QUESTION, model }, { streamed: true, onText }))
        assert.ok(text.length > 20)
        assert.equal(failure.className, isAi(client) ? 'AI_StreamProviderError' : classOf(client, 'APIError'))
        // Errors of one protocol have their status in their words.
        assert.equal(failure.status, client.name === 'gemini' ? status : undefined)
        assert.equal(failure.code ?? undefined, code)
        assert.equal(failure.type, type[client.protocol])
        // A library that keeps no headers has no request id to show, but for that in our own words in one protocol.
        const isInWords = client.protocol === 'gemini' && code !== undefined
        const isInHeaders = !isAi(client) && !client.hidesHeadersOfErrors
        assert.equal(isId(failure.requestId ?? ''), isInWords || isInHeaders)
      })
    }
})
