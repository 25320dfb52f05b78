import type pg from 'pg'
import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Seal } from '../kernel/seal.ts'
import type { Secret } from '../kernel/secret.ts'
import { createCache } from '../storage/cache.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { parseBaseUrl } from './address.ts'
import { openCredential } from './credential.ts'
import { upstreamName } from './name.ts'

export type UpstreamKind = 'native' | 'managed'

/** An upstream that can be asked now. A call that has one keeps it, whatever is changed meanwhile. */
export type Binding = {
  readonly id: Id
  readonly slot: string
  /** What operators know it by, in logs and metrics. */
  readonly name: string
  readonly mode: Mode
  readonly baseUrl: string
  readonly kind: UpstreamKind
  readonly credential: Secret | null
  /** The vendor's own words for the placeholders in our paths. */
  readonly segments: Readonly<Record<string, string>>
  readonly weight: number
  /** What our account there may send. Null where nobody counts. */
  readonly requestsPerMinute: number | null
  /** Whether calls are given to it. What it was given before is asked for all the same. */
  readonly enabled: boolean
  /** How we are known to a platform that asks its users, and where it asks them; the credential is our secret there. */
  readonly client: { readonly id: string; readonly authorizeUrl: string } | null
}

export type Bindings = {
  /** The enabled ones, those to be asked first at the front; none where nothing is configured. */
  readonly find: (slot: string, mode: Mode) => readonly Binding[] | Promise<readonly Binding[]>
  /** One of them, also where it is given no calls any more; undefined where it was removed. */
  readonly findOne: (slot: string, mode: Mode, id: Id) => Promise<Binding | undefined>
  readonly close: () => void
}

type Parts = {
  readonly pool: pg.Pool
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'lagMs'>
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'cacheLoads'>
  /** Null where there is no master key: upstreams with a credential can't be used then. */
  readonly seal: Seal | null
  /** Told of an upstream that is configured and can't be used. */
  readonly log?: Pick<Log, 'error'>
  readonly allowPlainHttp?: boolean
}

const MAX_SLOTS = 10_000
const PER_SLOT_LIMIT = 100
const NONE: readonly Binding[] = []

export function createBindings(parts: Parts): Bindings {
  const { pool, feed, clock, metrics } = parts
  const cache = createCache<OfSlot>({
    name: 'upstreams',
    topic: 'upstream',
    load: async (key) => {
      const [slot = '', mode = ''] = key.split(' ')
      const all = await loadBindings(pool, { slot, mode }, parts)
      return { all, enabled: all.filter(({ enabled }) => enabled) }
    },
    feed,
    clock,
    metrics,
    maxEntries: MAX_SLOTS,
  })
  return {
    find(slot, mode) {
      const key = `${slot} ${mode}`
      return cache.peek(key)?.enabled ?? cache.get(key).then((found) => found?.enabled ?? NONE)
    },
    findOne: async (slot, mode, id) => (await cache.get(`${slot} ${mode}`))?.all.find((one) => one.id === id),
    close: cache.close,
  }
}

type OfSlot = { readonly all: readonly Binding[]; readonly enabled: readonly Binding[] }

const bindingRow = z.object({
  id: z.string(),
  slot: z.string(),
  mode: z.enum(['live', 'test']),
  base_url: z.string(),
  kind: z.enum(['native', 'managed']),
  credential: z.instanceof(Buffer).nullable(),
  segments: z.record(z.string(), z.string()),
  weight: z.int(),
  requests_per_minute: z.int().nullable(),
  enabled: z.boolean(),
  client_id: z.string().nullable(),
  authorize_url: z.string().nullable(),
})

type Row = z.output<typeof bindingRow>
type Reading = Pick<Parts, 'seal' | 'log' | 'allowPlainHttp'>

/** Those of a slot as they are now, for whoever asks once; the disabled ones too, at the end. */
export function readBindings(
  { pool, ...reading }: Pick<Parts, 'pool' | 'seal' | 'log' | 'allowPlainHttp'>,
  slot: string,
  mode: Mode,
): Promise<readonly Binding[]> {
  return loadBindings(pool, { slot, mode }, reading)
}

type Place = { readonly slot: string; readonly mode: string }

async function loadBindings(pool: pg.Pool, { slot, mode }: Place, reading: Reading): Promise<readonly Binding[]> {
  const { rows } = await pool.query(
    `select id, slot, mode, base_url, kind, credential, segments, weight, requests_per_minute, enabled, client_id, authorize_url
     from upstreams
     where slot = $1 and mode = $2 order by enabled desc, priority, id limit $3`,
    [slot, mode, PER_SLOT_LIMIT],
  )
  return z
    .array(bindingRow)
    .parse(rows)
    .flatMap((row) => bindingOf(row, reading) ?? [])
}

/** Undefined where it can't be used. It is left out, so that it does not take those with it that stand in for it. */
function bindingOf(row: Row, { seal, log, allowPlainHttp = false }: Reading): Binding | undefined {
  const { id, slot, mode, base_url: baseUrl, kind, segments, weight, requests_per_minute: requestsPerMinute } = row
  const { enabled, client_id: clientId, authorize_url: authorizeUrl } = row
  const client = clientId === null || authorizeUrl === null ? null : { id: clientId, authorizeUrl }
  try {
    const { origin } = parseBaseUrl(baseUrl, { allowPlainHttp })
    const name = upstreamName(row)
    const credential = row.credential === null ? null : openCredential(seal, row.credential, { id, origin })
    return { id, slot, name, mode, baseUrl, kind, credential, segments, weight, requestsPerMinute, enabled, client }
  } catch (error) {
    log?.error('an upstream can not be used as it is configured', {
      upstream: upstreamName(row),
      upstream_id: id,
      error,
    })
    return undefined
  }
}
