import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof, seed, sometimes } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { hashOf, Random } from '../../../sandbox/src/random.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { type Customer, makeCustomer, startInstallation } from '../installation.ts'
import { hear, limited, PROTOCOLS, type Question, question, streamed } from './streams.ts'
import { type Asked, type Counts, judge } from './token-limits-judge.ts'
import { stepsOf, watchRows } from './token-limits-seen.ts'

const MIXES = count({ full: 1_000, reduced: 40 })
const PROCESSES = 3
const MIXES_AT_ONCE = 4
const CALLS_AT_ONCE = [3, 8] as const
/** Tokens a minute. */
const LIMITS = [3_000, 10_000, 60_000] as const
const OUTPUT_MOST = 64_000
/** Of the call that the first mix begins with. */
const ATTEMPTS = 5
/** By the first call of the first mix, or by all. */
const SURE = ['admitted', 'given_back', 'used_beyond_the_reserve', 'left_beyond_the_limit'] as const

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: PROCESSES })
const { pool, gateways } = installation
after(installation.stop)
await watchRows(pool)

type Call = {
  readonly question: Question
  readonly output: number | undefined
  readonly isStream: boolean
  readonly leavesAt?: number
}

const FAILURES = [
  'sandbox:status=400',
  'sandbox:status=500',
  'sandbox:reset=before-headers',
  'sandbox:truncate',
] as const

/** Anything that somebody may ask of a model, with as much output as makes others wait. */
function makeCall(random: Random, tokensPerMinute: number): Call {
  if (random.chance(0.08)) return { question: reranking(random), output: undefined, isStream: false }
  const protocol = random.pick(PROTOCOLS)
  const choices = protocol === 'openai' && random.chance(0.25) ? random.between(2, 3) : 1
  const share = random.chance(0.05) ? 1.1 : random.decimal(0.02, 0.6, 3)
  const limit = Math.min(OUTPUT_MOST, Math.ceil((share * tokensPerMinute) / choices))
  const isLimited = random.chance(0.9)
  const words = [wordsFor(random, limit), random.chance(0.3) ? `sandbox:delay=${random.between(1, 60)}` : '']
  const members = { ...(isLimited && limited(protocol, limit)), ...(choices > 1 && { n: choices }) }
  const isStream = random.chance(0.4)
  const make = isStream ? streamed : question
  return {
    question: make(protocol, random.pick(['sandbox/echo', 'sandbox/text']), words.join(' '), members),
    output: isLimited ? limit * choices : undefined,
    isStream,
    ...(random.chance(0.15) && { leavesAt: random.pick([0, 1, 600]) }),
  }
}

/** How it goes: ordinary, all of its output, more input than anybody would guess, from a cache, or wrong. */
function wordsFor(random: Random, limit: number): string {
  const dice = random.fraction()
  if (dice < 0.3) return ''
  if (dice < 0.5) return `sandbox:output-tokens=${Math.min(limit, 2_000)}`
  if (dice < 0.7) return `sandbox:output-tokens=${Math.min(limit, 300)} sandbox:input-tokens=${limit}`
  if (dice < 0.85) return `sandbox:input-tokens=${random.between(60, 200)} sandbox:cache-read=${random.between(1, 50)}`
  return random.pick(FAILURES)
}

function reranking(random: Random): Question {
  const documents = Array.from({ length: random.between(1, 5) }, (_, at) => `a story of ${at} foxes `.repeat(20))
  return { path: '/v1/rerank', body: { query: 'a quick animal', documents } }
}

/** It goes on when a minute has passed and others have begun. */
const LONG: Call = {
  question: question('openai', 'sandbox/echo', 'sandbox:delay=1500', limited('openai', 50)),
  output: 50,
  isStream: false,
}

/** It uses more than its window has, which by chance is too seldom to be sure of. */
function beyond(tokensPerMinute: number): Call {
  const words = `sandbox:output-tokens=10 sandbox:input-tokens=${2 * tokensPerMinute}`
  return { question: question('openai', 'sandbox/echo', words, limited('openai', 50)), output: 50, isStream: false }
}

/** One key, asked for many things at once over all processes, in two goes, with a minute between them at times. */
async function runMix(n: number, counts: Counts): Promise<void> {
  const random = new Random(hashOf(seed, 'token limits', String(n)))
  const tokensPerMinute = random.pick(LIMITS)
  const limits = { requestsPerMinute: 1_000, tokensPerMinute }
  const customer = await makeCustomer(pool, { key: { rates: limits } })
  const asked: Asked[] = []
  const go = (more: readonly Call[] = []) => {
    const calls = Array.from({ length: random.between(...CALLS_AT_ONCE) }, () => makeCall(random, tokensPerMinute))
    return [...more, ...calls].map((call) =>
      send(gateways[random.between(0, PROCESSES - 1)]?.url ?? '', customer, call, asked),
    )
  }
  if (n === 0) {
    // A machine that is busy with others may have a call fail, and only one that is answered is sure to use so much.
    while (asked.at(-1)?.status !== 200 && asked.length < ATTEMPTS)
      await send(gateways[0]?.url ?? '', customer, beyond(tokensPerMinute), asked)
    assert.equal(asked.at(-1)?.status, 200, asked.map(({ text }) => text).join('\n'))
  }
  const turns = random.chance(0.3)
  const first = go(turns ? [LONG] : [])
  await Promise.race(first)
  if (turns) await passAMinute(customer)
  await Promise.all([...first, ...go()])
  const isQuiet = async () =>
    (await pool.query('select from holds where account_id = $1', [customer.accountId])).rowCount === 0
  await until(isQuiet, PATIENCE_MS, 'the end of all calls')
  judge(await stepsOf(pool, customer.keyId), asked, limits, counts)
  assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
}

async function send(url: string, { secret }: Customer, call: Call, asked: Asked[]): Promise<void> {
  const { question, output, isStream, leavesAt } = call
  if (leavesAt !== undefined) {
    await hear(url, secret, question, { atByte: leavesAt })
    return
  }
  const answer = await fetch(url + question.path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(question.body),
  })
  const { status, headers } = answer
  const hasBegunToStream = isStream && headers.get('content-type')?.startsWith('text/event-stream') === true
  // A stream that its upstream broke is broken for its caller, too.
  const text = await answer.text().catch((error: unknown) => {
    if (hasBegunToStream) return ''
    throw error
  })
  asked.push({ status, headers, text, id: headers.get('x-request-id') ?? '', output, isStream: hasBegunToStream })
}

/** As if it were a minute later: under the lock under which everything about a key happens. */
async function passAMinute({ accountId, keyId }: Customer): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('select from accounts where id = $1 for no key update', [accountId])
    for (const sql of [
      "update holds set begun_at = begun_at - interval '61 seconds' where credential_id = $1",
      "update credentials set all_started_at = all_started_at - interval '61 seconds' where id = $1",
    ])
      await client.query(sql, [keyId])
    await client.query('commit')
  } finally {
    client.release()
  }
}

describe('LIMIT-1 LIMIT-4 LIMIT-5 tokens a minute over three processes', () => {
  it(`hold in ${MIXES} mixes of calls at once: reserved and used within the limit at every admission, and every header true`, async () => {
    const counts: Counts = {
      admitted: 0,
      refused_for_now: 0,
      refused_for_good: 0,
      given_back: 0,
      used_beyond_the_reserve: 0,
      left_beyond_the_limit: 0,
      ended_in_another_window: 0,
      told_at_their_end: 0,
      told_at_their_beginning: 0,
    }
    let next = 0
    const runners = Array.from({ length: MIXES_AT_ONCE }, async () => {
      for (let n = next++; n < MIXES; n = next++) await runMix(n, counts)
    })
    await Promise.all(runners)
    for (const what of SURE) assert.ok(counts[what] > 0, `nothing was ever ${what}: ${JSON.stringify(counts)}`)
    for (const [what, times] of Object.entries(counts)) sometimes(times > 0, `some are ${what}`)
    const { rows } = await pool.query<{ read: number }>(
      'select count(*)::float8 as read from charges where cache_read_tokens > 0',
    )
    sometimes((rows[0]?.read ?? 0) > 0, 'something is read from a cache')
    recordProof('token-limits', 'reserved and used within the limit', {
      processes: PROCESSES,
      mixes: MIXES,
      ...counts,
      read_from_a_cache: rows[0]?.read,
      violations: 0,
    })
  })
})
