import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { request } from 'undici'
import { z } from 'zod'
import { until } from '../../harness/until.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { resolveCall } from '../../server/src/calls/orphans.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { charge, type Nanos } from '../../server/src/kernel/money.ts'
import { add, multiply, type Rational, rational } from '../../server/src/kernel/rational.ts'
import type { Cluster } from './cluster.ts'
import { ABOUT_A_LINK, FOLLOW_OPERATION } from './linked-accounts.ts'
import { resolveTasks, type TaskResolutions } from './resolve-tasks.ts'
import type { Tokens } from './speech.ts'
import { sentOf, speechOf } from './speeches.ts'
import { VIDEO_OPERATION } from './videos.ts'
import { picturesIn } from './whole-speeches.ts'

export type Resolutions = {
  /** What was charged for calls that nobody had settled; null where the upstream was not asked, or does not bill. */
  readonly byId: ReadonlyMap<Id, Nanos | null>
  readonly tasks: TaskResolutions
  readonly tookMs: number
  /** Calls that were still open at the end of the time, or that PostgreSQL would not end. */
  readonly left: readonly Id[]
}

const DEADLINE_MS = 90_000
/** A process that slept or was cut off may yet end its calls by itself. */
const GRACE_MS = 1_500

const holdRow = z.object({
  id: z.string(),
  operation: z.string(),
  terms: z.string().transform((text) => terms.parse(JSON.parse(text))),
})
const terms = z.object({
  rates: z.array(z.object({ unit: z.string(), price: z.string().regex(/^\d+\/\d+$/) })),
})

/**
 * As an operator does: waits until calls that nobody runs are found, and ends each by what its upstream's journal says.
 * Between the two, `whenFound`: callers may come back while their calls are unsettled.
 */
export async function resolveAll(cluster: Cluster, whenFound: () => Promise<void>): Promise<Resolutions> {
  const { pool, upstream } = cluster
  const startedAtMs = performance.now()
  const byId = new Map<Id, Nanos | null>()
  // A task's call is nobody's, and goes on until its upstream ends it.
  const running = 'select from holds where unsettled_at is null and owner_id is not null'
  const nobodyRuns = async () => (await pool.query(running)).rowCount === 0
  const wereFound = await until(nobodyRuns, DEADLINE_MS).then(
    () => true,
    () => false,
  )
  await whenFound()
  await delay(GRACE_MS)
  // Streams that their callers have left are heard out. What nobody has found by now, nobody finds.
  if (wereFound) await until(nobodyRuns, DEADLINE_MS).catch(() => {})
  const journal = await upstream.journal()
  const { rows } = await pool.query(
    'select id, operation, terms from holds where unsettled_at is not null and operation <> $1',
    [VIDEO_OPERATION],
  )
  for (const hold of z.array(holdRow).parse(rows)) {
    const amount = await amountOf(hold, journal, upstream.url)
    // One that PostgreSQL refuses to end stays open, and is judged as that.
    const resolved = await resolveCall(pool, hold.id, amount).catch(() => undefined)
    if (resolved !== undefined) byId.set(hold.id, amount)
  }
  const tasks = await resolveTasks(cluster)
  const left = await openCalls(pool)
  return { byId, tasks, tookMs: Math.round(performance.now() - startedAtMs), left }
}

async function openCalls(pool: pg.Pool): Promise<readonly Id[]> {
  return (await pool.query<{ id: Id }>('select id from holds')).rows.map(({ id }) => id)
}

async function amountOf(
  { id, operation, terms: { rates } }: z.output<typeof holdRow>,
  journal: readonly JournalEntry[],
  upstreamUrl: string,
): Promise<Nanos | null> {
  const billed = journal.find((entry) => entry.request_id === id && entry.billed && !ABOUT_A_LINK.test(entry.path))
  if (billed === undefined) return null
  const tokens = tokensOf(operation, billed)
  if (tokens === 'none') return null
  const unitsOfRate = async (unit: string) => {
    const [, size, quality] = PICTURE.exec(unit) ?? []
    if (size !== undefined && quality !== undefined) return BigInt(picturesIn(billed, { size, quality }))
    if (tokens !== undefined) return BigInt(tokens[CLASSES[unit] ?? fail(unit)])
    return unit === 'token' ? BigInt(billed.tokens ?? 0) : unitsOf(operation, billed, upstreamUrl)
  }
  let sum: Rational = rational(0n)
  for (const { unit, price } of rates) {
    const [numerator = '0', denominator = '1'] = price.split('/')
    sum = add(sum, multiply(rational(BigInt(numerator), BigInt(denominator)), rational(await unitsOfRate(unit))))
  }
  return charge(sum)
}

/** Its size and quality. */
const PICTURE = /^(\w+)\/(\w+) image$/

const CLASSES: Readonly<Record<string, keyof Tokens>> = {
  'input token': 'input',
  'output token': 'output',
  'cache-read token': 'cacheRead',
  'cache-write token': 'cacheWrite',
}

function fail(unit: string): never {
  throw new Error(`nobody knows what a ${unit} is`)
}

/** What a model was asked and has answered: as it reported, or else as much as it sent; nothing of a stream that sent nothing. */
function tokensOf(operation: string, entry: JournalEntry): Tokens | 'none' | undefined {
  const speech = speechOf(operation)
  if (speech === undefined) return undefined
  const isNothing = entry.stream === true && (entry.tokens ?? 0) === 0
  return speech.reported(entry) ?? (isNothing ? 'none' : sentOf(speech, entry))
}

/** What an upstream's answer was worth that nobody has seen: the sandbox gives the same one again, without the trouble. */
async function unitsOf(operation: string, entry: JournalEntry, upstreamUrl: string): Promise<bigint> {
  const { method, path, query, billed } = entry
  // What was done in a user's name is not done again to see what it came to.
  if (operation === FOLLOW_OPERATION) return 1n
  // The journal does not keep bodies; what is posted and not counted by the token is paid by the call.
  if (method === 'POST') return billed ? 1n : 0n
  const asked = `${upstreamUrl}${path}?${query.replaceAll(/sandbox%3A[^&+]*/g, '')}`
  const headers = { authorization: 'Bearer sandbox-key', 'x-api-key': 'sandbox-key', 'api-key': 'sandbox-key' }
  const { statusCode: status, body } = await request(asked, { headers })
  const sold = catalogue.operations.find((one) => one.id === operation)
  const measured = sold?.price?.measure({ status, json: await body.json() })
  if (measured === undefined) throw new Error(`nobody knows what ${operation} ${asked} used`)
  return measured.units
}
