import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import OpenAI from 'openai'
import { seedModel } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { TIERS } from '../../../server/src/catalogue/tiers.ts'
import { RATE_HEADERS } from '../../../server/src/limits/headers.ts'
import { saveModel } from '../../../server/src/pricing/configure-models.ts'
import { grantTier } from '../../../server/src/workspaces/workspaces.ts'
import {
  ACTOR,
  ask,
  type Customer,
  codeOf,
  errorOf,
  ids,
  makeCustomer,
  startInstallation,
  type Told,
} from '../installation.ts'
import { leaveOnce, limited, type Protocol, question, streamed } from './streams.ts'

const database = await freshDatabase()
/** Who leaves is not heard out, so that calls which hang end when a test is done with them. */
const env = { FAREBOX_HTTP_ABANDONED_STREAM_MS: '0' }
const installation = await startInstallation(database.url, { env })
const { url, pool, sandbox } = installation
after(installation.stop)

const LIMIT = TIERS.free.tokensPerMinute

/** Somebody with money and the limits of a new account. */
async function makeFree(wanted: Parameters<typeof makeCustomer>[1] = {}): Promise<Customer> {
  const customer = await makeCustomer(pool, wanted)
  await grantTier({ pool, ids }, ACTOR, customer.workspaceId, { tier: 'enterprise', limits: TIERS.free })
  return customer
}

type More = { readonly protocol?: Protocol; readonly model?: string; readonly text?: string; readonly members?: object }

/** Asks with an output limit; without one where it is undefined. */
function chat({ secret }: Customer, maxTokens: number | undefined, more: More = {}): Promise<Told> {
  const { protocol = 'openai', model = 'sandbox/echo', text = '', members = {} } = more
  const limit = maxTokens === undefined ? {} : limited(protocol, maxTokens)
  const { path, body } = question(protocol, model, text, { ...limit, ...members })
  return ask(url, secret, path, { body })
}

const numberIn = ({ headers }: Told, name: (typeof RATE_HEADERS)[number]) => Number(headers.get(name) ?? Number.NaN)
const left = (told: Told) => numberIn(told, 'X-RateLimit-Remaining-Tokens')

/** What the row of the key's window says. */
async function windowOf({ keyId }: Customer) {
  const { rows } = await pool.query<{ requests: number; tokens: number; reset: number }>(
    `select requests, tokens::float8, ceil(extract(epoch from started_at + interval '60 seconds'))::float8 as reset
     from windows where credential_id = $1 and limit_group = 'all'`,
    [keyId],
  )
  const [row] = rows
  assert.ok(row !== undefined)
  return row
}

/** The six headers of an answer are what the row says. */
async function assertTrue(told: Told, customer: Customer): Promise<void> {
  const { requests, tokens, reset } = await windowOf(customer)
  const expected = [60, 60 - requests, reset, LIMIT, Math.max(0, LIMIT - tokens), reset]
  assert.deepEqual(
    RATE_HEADERS.map((name) => numberIn(told, name)),
    expected,
  )
}

function untilOpen({ accountId }: Customer, calls: number): Promise<number> {
  const isSo = async () =>
    (await pool.query('select id from holds where account_id = $1', [accountId])).rowCount === calls
  return until(isSo, PATIENCE_MS, `${calls} open calls`)
}

/** While something is done, somebody has a call open that reserves so much. */
async function besideACall(customer: Customer, maxTokens: number, use: () => Promise<void>): Promise<void> {
  const hanging = streamed('openai', 'sandbox/echo', 'sandbox:hang=headers', limited('openai', maxTokens))
  let isOver = false
  const other = leaveOnce(url, customer.secret, hanging, async () => isOver)
  try {
    await untilOpen(customer, 1)
    await use()
  } finally {
    isOver = true
    await other
  }
}

async function whileNobodyAnswers(use: () => Promise<unknown>): Promise<void> {
  sandbox.pause()
  try {
    await use()
  } finally {
    sandbox.resume()
  }
}

/** What the input of the shortest question is taken for. */
const INPUT = await (async () => {
  const told = await chat(await makeFree(), 64_000)
  return Number(errorOf(told).needed_tokens) - 64_000
})()

describe('LIMIT-1 tokens a minute, by what calls may use', () => {
  it('admit none of three calls at once of which each may use more than all of it', async () => {
    const customer = await makeFree()
    const told = await Promise.all([1, 2, 3].map(() => chat(customer, LIMIT, { text: 'sandbox:output-tokens=60000' })))
    assert.deepEqual(told.map(codeOf), Array(3).fill('quota_exceeded'))
    assert.equal((await pool.query('select id from charges where account_id = $1', [customer.accountId])).rowCount, 0)
  })

  it('admit one of three calls at once of which each may use nearly all of it, and no more is used', async () => {
    const customer = await makeFree()
    const asked: Promise<Told>[] = []
    await whileNobodyAnswers(async () => {
      let refusals = 0
      for (const text of Array(3).fill('sandbox:output-tokens=59000')) {
        const one = chat(customer, 59_000, { text })
        asked.push(one)
        void one.then(({ status }) => {
          if (status === 429) refusals += 1
        })
      }
      await until(() => refusals === 2, PATIENCE_MS, 'two refusals')
    })
    const told = await Promise.all(asked)
    assert.deepEqual(told.map(({ status }) => status).sort(), [200, 429, 429])
    const used = await windowOf(customer)
    assert.ok(used.tokens > 59_000 && used.tokens <= LIMIT, `${used.tokens}`)
    const refused = told.find(({ status }) => status === 429)
    assert.ok(refused !== undefined)
    assert.equal(codeOf(refused), 'rate_limit_exceeded')
    assert.match(String(errorOf(refused).message), /may use up to 59,0\d\d tokens; \d+ of 60,000 .* are left/)
    const waitSeconds = Number(refused.headers.get('retry-after'))
    assert.ok(waitSeconds >= 1 && waitSeconds <= 60, `${waitSeconds}`)
  })

  it('count an output limit once for each choice', async () => {
    const customer = await makeFree()
    const refused = await chat(customer, 20_000, { members: { n: 3 } })
    assert.deepEqual([codeOf(refused), errorOf(refused).needed_tokens], ['quota_exceeded', INPUT + LIMIT])
    assert.equal((await chat(customer, 10_000, { members: { n: 3 } })).status, 200)
  })

  it('are given back as far as they were not used, to the very one', async () => {
    const customer = await makeFree()
    const first = await chat(customer, 50_000)
    assert.ok(left(first) > 59_900 && left(first) < LIMIT, `${left(first)}`)
    const needs = (tokens: number) => chat(customer, tokens - INPUT, { text: '' })
    assert.equal(codeOf(await needs(left(first) + 1)), 'rate_limit_exceeded')
    assert.equal((await needs(left(first))).status, 200)
  })

  it('are given back whole by a call that failed', async () => {
    const customer = await makeFree()
    const failed = await chat(customer, 50_000, { text: 'sandbox:reset=before-headers' })
    assert.ok(failed.status >= 500, `${failed.status}`)
    assert.equal((await windowOf(customer)).tokens, 0)
    assert.equal(left(failed), LIMIT)
  })

  it('keep what a call has used beyond what it reserved, and leave nothing', async () => {
    const customer = await makeFree()
    // An upstream may count the input otherwise than we estimate it.
    const told = await chat(customer, 30_000, { text: 'sandbox:output-tokens=30000 sandbox:input-tokens=30200' })
    assert.equal(told.status, 200)
    assert.ok((await windowOf(customer)).tokens > LIMIT)
    assert.equal(left(told), 0)
    await assertTrue(told, customer)
    assert.equal(codeOf(await chat(customer, 1)), 'rate_limit_exceeded')
  })

  for (const protocol of ['openai', 'openai_responses', 'anthropic'] as const) {
    it(`count what was read from a cache (${protocol})`, async () => {
      const [plain, cached] = [await makeFree(), await makeFree()]
      const words = 'sandbox:output-tokens=10'
      assert.equal((await chat(plain, 1_000, { protocol, text: words })).status, 200)
      const told = await chat(cached, 1_000, {
        protocol,
        text: `${words} sandbox:input-tokens=700 sandbox:cache-read=500`,
      })
      assert.equal(told.status, 200)
      const { rows } = await pool.query<{ read: number; all: number }>(
        `select cache_read_tokens::float8 as read,
           (input_tokens + output_tokens + cache_read_tokens + cache_write_tokens)::float8 as all
         from charges where account_id = $1`,
        [cached.accountId],
      )
      assert.equal(rows[0]?.read, 500)
      assert.equal((await windowOf(cached)).tokens, rows[0]?.all)
      assert.ok((await windowOf(cached)).tokens >= (await windowOf(plain)).tokens + 500)
      await assertTrue(told, cached)
    })
  }
})

describe('LIMIT-1 a call that has no room now', () => {
  const HOLDS = /Your running calls reserve tokens; some may be free when they end\. Retry in 1 s\.$/

  it('is told to wait a second where running calls would make room, and is admitted when they have ended', async () => {
    const customer = await makeFree()
    let running: Promise<Told> | undefined
    await whileNobodyAnswers(async () => {
      running = chat(customer, 50_000)
      await untilOpen(customer, 1)
      const refused = await chat(customer, 40_000)
      assert.deepEqual([codeOf(refused), refused.headers.get('retry-after')], ['rate_limit_exceeded', '1'])
      assert.equal(refused.headers.get('x-should-retry'), null)
      assert.match(String(errorOf(refused).message), HOLDS)
    })
    assert.equal((await running)?.status, 200)
    assert.equal((await chat(customer, 40_000)).status, 200)
  })

  it('is told to wait for the end of the window where what was used is in the way, whatever runs beside it', async () => {
    const customer = await makeFree()
    const used = await chat(customer, 20_100, { text: 'sandbox:output-tokens=20000' })
    assert.equal(used.status, 200)
    await besideACall(customer, 20_000, async () => {
      const refused = await chat(customer, 50_000)
      assert.equal(codeOf(refused), 'rate_limit_exceeded')
      assert.doesNotMatch(String(errorOf(refused).message), /running calls/)
    })
  })
})

describe('LIMIT-1 a call without an output limit', () => {
  it("reserves the model's default, which is sent upstream and held for, and is told it", async () => {
    const customer = await makeFree()
    let running: Promise<Told> | undefined
    await whileNobodyAnswers(async () => {
      running = chat(customer, undefined)
      await untilOpen(customer, 1)
      assert.equal((await windowOf(customer)).tokens, INPUT + 4_096)
    })
    const told = await running
    assert.equal(told?.headers.get('x-farebox-output-cap'), '4096')
  })

  it('is told which limit to send where the default exceeds the tier, and that limit is admitted', async () => {
    const model = 'sandbox/generous'
    await seedModel(pool, { id: model, upstreamModel: 'sandbox/echo' })
    await saveModel({ pool }, { id: model, outputCap: 128_000, outputMost: 128_000 })
    const customer = await makeFree()
    await until(async () => (await chat(customer, 1, { model })).status === 200, PATIENCE_MS, 'the model')
    const refused = await chat(await makeFree(), undefined, { model })
    assert.deepEqual([refused.status, codeOf(refused)], [429, 'quota_exceeded'])
    const { message } = errorOf(refused)
    assert.match(String(message), /no output limit, so the model's default of 128,000 counts/)
    const fitting = /of ([\d,]+) at most/.exec(String(message))?.[1]?.replaceAll(',', '')
    const free = await makeFree()
    assert.equal(codeOf(await chat(free, Number(fitting) + 1, { model })), 'quota_exceeded')
    assert.equal((await chat(free, Number(fitting), { model })).status, 200)
  })
})

describe('LIMIT-1 a call that alone exceeds the limit', () => {
  for (const [protocol, name] of [
    ['openai', 'max_completion_tokens or max_tokens'],
    ['openai_responses', 'max_output_tokens'],
    ['anthropic', 'max_tokens'],
    ['gemini', 'maxOutputTokens or max_output_tokens'],
  ] as const) {
    it(`is told both numbers and what to lower (${protocol})`, async () => {
      const refused = await chat(await makeFree(), 64_000, { protocol })
      assert.deepEqual([refused.status, codeOf(refused)], [429, 'quota_exceeded'])
      const { message } = errorOf(refused)
      assert.match(String(message), /may use up to 64,0\d\d tokens; your limit is 60,000 per 60 seconds/)
      assert.ok(String(message).includes(`Lower ${name} to 59,9`), String(message))
      assert.equal(refused.headers.get('x-should-retry'), 'false')
      for (const header of RATE_HEADERS) assert.ok(refused.headers.has(header), header)
    })
  }

  it('is sent once by the official library, which does not repeat it', async () => {
    const { secret } = await makeFree()
    let sent = 0
    const client = new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: secret,
      maxRetries: 5,
      fetch(input, init) {
        sent += 1
        return fetch(input, init)
      },
    })
    const messages = [{ role: 'user' as const, content: 'hello' }]
    const refused = client.chat.completions.create({ model: 'sandbox/echo', messages, max_tokens: 64_000 })
    await assert.rejects(refused, (error) => {
      assert.ok(error instanceof OpenAI.RateLimitError)
      assert.equal(error.code, 'quota_exceeded')
      return true
    })
    assert.equal(sent, 1)
  })

  it('counts as a request, reserves nothing, and is told so', async () => {
    const customer = await makeFree()
    for (let at = 1; at <= 3; at += 1) {
      const refused = await chat(customer, 64_000)
      assert.equal(codeOf(refused), 'quota_exceeded')
      await assertTrue(refused, customer)
      const { requests, tokens } = await windowOf(customer)
      assert.deepEqual([requests, tokens], [at, 0])
    }
  })

  it('is refused for its requests once these are spent, and is told its price all the same where it asks for a quote', async () => {
    const customer = await makeFree({ requestsPerMinute: 2 })
    const { path, body } = question('openai', 'sandbox/echo', '', limited('openai', 64_000))
    const quoted = await ask(url, customer.secret, path, { body, headers: { 'x-farebox-cost-mode': 'quote' } })
    assert.equal(quoted.status, 200)
    const codes = [codeOf(await chat(customer, 64_000)), codeOf(await chat(customer, 64_000))]
    assert.deepEqual(codes, ['quota_exceeded', 'rate_limit_exceeded'])
  })

  it('is told to shorten its input where that is too long already', async () => {
    const refused = await chat(await makeFree(), 10, { text: 'word '.repeat(100_000) })
    assert.equal(codeOf(refused), 'quota_exceeded')
    assert.match(String(errorOf(refused).message), /Shorten the request/)
  })
})

describe('LIMIT-4 the headers', () => {
  it('of whole answers are as of the end: what others reserve is gone, and what the call did not use is there', async () => {
    const customer = await makeFree()
    await besideACall(customer, 20_000, async () => {
      const told = await chat(customer, 30_000)
      assert.ok(left(told) < 40_000 && left(told) > 39_000, `${left(told)}`)
      await assertTrue(told, customer)
    })
  })

  it('of a group of endpoints with a limit of its own speak of that', async () => {
    const customer = await makeFree()
    const told = await chat(customer, 1_000, { protocol: 'gemini' })
    const [limit, requests] = [
      numberIn(told, 'X-RateLimit-Limit-Requests'),
      numberIn(told, 'X-RateLimit-Remaining-Requests'),
    ]
    assert.deepEqual([limit, requests], [30, 29])
    assert.equal(left(told), LIMIT - (await windowOf(customer)).tokens)
  })

  it('of an error that an upstream told are as of the end, too', async () => {
    const customer = await makeFree()
    const told = await chat(customer, 40_000, { text: 'sandbox:status=400' })
    assert.equal(told.status, 400)
    assert.equal(left(told), LIMIT)
    await assertTrue(told, customer)
  })

  for (const protocol of ['openai', 'openai_responses', 'anthropic'] as const) {
    it(`of a stream are as of its beginning (${protocol})`, async () => {
      const customer = await makeFree()
      const { path, body } = streamed(protocol, 'sandbox/echo', '', limited(protocol, 40_000))
      const told = await ask(url, customer.secret, path, { body })
      assert.equal(told.status, 200)
      assert.ok(left(told) <= 20_000 - 1 && left(told) > 19_900, `${left(told)}`)
      await untilOpen(customer, 0)
      assert.ok((await windowOf(customer)).tokens < 100)
    })
  }

  it('of a refusal are as of its beginning', async () => {
    const customer = await makeFree()
    await besideACall(customer, 50_000, async () => {
      const refused = await chat(customer, 20_000)
      assert.equal(codeOf(refused), 'rate_limit_exceeded')
      await assertTrue(refused, customer)
      assert.equal((await windowOf(customer)).requests, 1)
    })
  })

  it('of an answer that could not be settled are as of the beginning', async () => {
    const customer = await makeFree()
    const client = await pool.connect()
    try {
      let running: Promise<Told> | undefined
      await whileNobodyAnswers(async () => {
        running = chat(customer, 1_000)
        await untilOpen(customer, 1)
        await client.query('begin')
        await client.query('set local idle_in_transaction_session_timeout = 0')
        await client.query('select from accounts where id = $1 for no key update', [customer.accountId])
      })
      const told = await running
      assert.ok(told !== undefined)
      assert.deepEqual([told.status, codeOf(told)], [503, 'settlement_timeout'])
      assert.deepEqual([numberIn(told, 'X-RateLimit-Remaining-Requests'), left(told)], [59, LIMIT - INPUT - 1_000])
      for (const header of RATE_HEADERS) assert.ok(told.headers.has(header), header)
    } finally {
      await client.query('rollback')
      client.release()
    }
    await untilOpen(customer, 0)
  })

  it('of a call whose window has turned are those of the next one, to which nothing is given back', async () => {
    const customer = await makeFree()
    const hanging = streamed('openai', 'sandbox/echo', 'sandbox:hang=headers', limited('openai', 20_000))
    let isOver = false
    let [long, next]: readonly (Promise<unknown> | undefined)[] = []
    let reserved = 0
    await whileNobodyAnswers(async () => {
      long = chat(customer, 30_000).then(async (told) => {
        assert.equal((await windowOf(customer)).tokens, reserved)
        await assertTrue(told, customer)
      })
      await untilOpen(customer, 1)
      for (const sql of [
        "update holds set begun_at = begun_at - interval '61 seconds' where credential_id = $1",
        "update credentials set all_started_at = all_started_at - interval '61 seconds' where id = $1",
      ])
        await pool.query(sql, [customer.keyId])
      next = leaveOnce(url, customer.secret, hanging, async () => isOver)
      await untilOpen(customer, 2)
      reserved = (await windowOf(customer)).tokens
      assert.ok(reserved > 20_000 && reserved < 20_100, `${reserved}`)
    })
    await Promise.resolve(long).finally(() => {
      isOver = true
    })
    await next
  })
})
