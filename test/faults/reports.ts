import { Pool } from 'undici'
import { z } from 'zod'
import type { Id } from '../../server/src/kernel/ids.ts'
import { usd } from '../../server/src/kernel/money.ts'
import type { History } from './history.ts'
import { addressOf, type Key, type Person } from './people.ts'
import type { Tokens } from './speech.ts'

/** What callers are told when they look up afterwards, through the same door. */
export type Reports = {
  /**
   * By request: what it cost, less what was given back; 'unsettled' or 'running' where it has not ended; null where it is not known, or was
   * refused before it began and cost nothing: of neither has the ledger anything.
   */
  readonly requests: ReadonlyMap<Id, bigint | string | null>
  /** By request that has ended: the tokens in its record, and where they are from as far as that is kept. */
  readonly tokens: ReadonlyMap<Id, Tokens & { readonly source: string | undefined }>
  /** By key: micro-USD in the usage report, and tokens. */
  readonly usage: ReadonlyMap<Id, { readonly micros: bigint; readonly tokens: Tokens }>
  readonly problems: readonly string[]
}

const AT_ONCE = 16
/** Enough of a long run to see what every kind of call is told; the ledger itself is compared for all. */
const LOOKED_UP_MOST = 1_500
const TRIES = 5

const requestForm = z.object({
  outcome: z.string(),
  cost: z.object({ usd: z.string() }).optional(),
  tokens: z.object({ input: z.int(), output: z.int(), cache_read: z.int(), cache_write: z.int() }).optional(),
  detail: z.object({ evidence: z.object({ usage_source: z.string().optional() }) }).nullish(),
})
const usageForm = z.object({
  totals: z.object({
    charged_micros_usd: z.int(),
    input_tokens: z.int(),
    output_tokens: z.int(),
    cache_read_tokens: z.int(),
    cache_write_tokens: z.int(),
  }),
})

export async function readReports(url: string, people: readonly Person[], history: History): Promise<Reports> {
  const pool = new Pool(url, { connections: AT_ONCE, pipelining: 1 })
  const keys = new Map(people.flatMap(({ keys }) => keys.map((key) => [key.id, key])))
  const requests = new Map<Id, bigint | string | null>()
  const tokens = new Map<Id, Tokens & { readonly source: string | undefined }>()
  const usage = new Map<Id, { readonly micros: bigint; readonly tokens: Tokens }>()
  const problems: string[] = []

  async function get(path: string, key: Key): Promise<{ status: number; json: unknown }> {
    for (let tries = 1; ; tries += 1) {
      try {
        const headers = { authorization: `Bearer ${key.secret}`, 'x-forwarded-for': addressOf(key) }
        const answer = await pool.request({ path, method: 'GET', headers })
        const json = await answer.body.json()
        if (answer.statusCode < 500 || tries === TRIES) return { status: answer.statusCode, json }
      } catch (error) {
        if (tries === TRIES) throw error
      }
    }
  }

  async function lookUp([id, key]: readonly [Id, Key]): Promise<void> {
    const { status, json } = await get(`/v1/requests/${id}`, key)
    const found = requestForm.safeParse(json)
    if (status === 404) requests.set(id, null)
    else if (status !== 200 || !found.success) problems.push(`GET /v1/requests/${id} answers ${status}`)
    else {
      const { outcome, cost, tokens: counted, detail } = found.data
      const told = cost === undefined ? outcome : usd(cost.usd)
      requests.set(id, outcome === 'refused' && told === 0n ? null : told)
      if (counted === undefined) return
      const { input, output, cache_read: cacheRead, cache_write: cacheWrite } = counted
      tokens.set(id, { input, output, cacheRead, cacheWrite, source: detail?.evidence.usage_source })
    }
  }

  async function readUsage(key: Key): Promise<void> {
    const { status, json } = await get('/v1/usage?start_time=1700000000', key)
    const found = usageForm.safeParse(json)
    if (!found.success) {
      problems.push(`GET /v1/usage of key ${key.id} answers ${status}`)
      return
    }
    const { totals } = found.data
    usage.set(key.id, {
      micros: BigInt(totals.charged_micros_usd),
      tokens: {
        input: totals.input_tokens,
        output: totals.output_tokens,
        cacheRead: totals.cache_read_tokens,
        cacheWrite: totals.cache_write_tokens,
      },
    })
  }

  const asked = new Map<Id, Key>()
  for (const { told, keyId, mark } of history.operations) {
    const key = keys.get(keyId ?? '')
    if (told.id === undefined || mark === undefined || key === undefined || isRevoked(key)) continue
    asked.set(told.id, key)
  }
  await inTurns([...asked].slice(-LOOKED_UP_MOST), lookUp)
  await inTurns(
    [...keys.values()].filter((key) => !isRevoked(key)),
    readUsage,
  )
  await pool.destroy()
  return { requests, tokens, usage, problems }
}

function isRevoked({ revokedAtMs }: Key): boolean {
  return revokedAtMs < Number.POSITIVE_INFINITY
}

async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items]
  const worker = async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}
