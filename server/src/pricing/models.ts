import type pg from 'pg'
import { z } from 'zod'
import type { Catalogue } from '../catalogue/operation.ts'
import type { Clock } from '../kernel/clock.ts'
import { asUnavailable, Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { MODES, type Mode } from '../kernel/mode.ts'
import type { UnitPrice } from '../kernel/money.ts'
import { type ModelLimits, PROTOCOL_NAMES, type ProtocolName } from '../protocols/protocol.ts'
import type { RouteProfile } from '../protocols/route-profile.ts'
import { createCache } from '../storage/cache.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'
import { queryOn, type Transactions } from '../storage/transaction.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tokenizer } from '../upstreams/tokens/count-tokens.ts'
import { type ClassPrices, classPricesForm, classPricesOf, type ModelRate, needsMet } from './class-prices.ts'
import { protocolsSold } from './sold.ts'
import { listSwitchedOff, switchesOf } from './switches.ts'
import { picturePriceIn, priceIn, readable, videoPriceIn } from './unit-prices.ts'

/** A model that is sold. A call that has one keeps it, whatever is changed meanwhile. */
export type Model = {
  readonly id: string
  readonly displayName: string
  readonly ownedBy: string
  readonly createdAt: Date
  readonly limits: ModelLimits
  readonly tokenizer: Tokenizer
  /** Null where none was set. Neither that nor what can't be read is a price: see `priceOfModel`. */
  readonly price: ModelPrice | typeof UNREADABLE | null
  /** The enabled ones, by priority. */
  readonly routes: readonly Route[]
  /** Set where an operator has switched it off: quotes that were given before are honoured, and nothing else. */
  readonly isOff?: true
}

export const TOKENIZERS = ['o200k', 'cl100k', 'bytes_3'] as const satisfies readonly Tokenizer[]

export type ModelPrice = {
  readonly version: string
  readonly rates: ModelRates
  /** What one picture costs by its `<size>/<quality>`, of a model that sells them by the piece. */
  readonly images: ReadonlyMap<string, ModelRate> | null
  /** What a millisecond of video costs by its resolution (`720P`), of a model that makes some. */
  readonly videos: ReadonlyMap<string, ModelRate> | null
  /** What it has beyond the plain classes of tokens; left out where it has nothing else. */
  readonly classes?: ClassPrices
}

/** What one token costs, by its class. */
export type ModelRates = Readonly<Record<'input' | 'output' | 'cacheRead' | 'cacheWrite', ModelRate>>

export type Route = {
  readonly id: Id
  /** Whose upstreams are asked; the mode is the caller's. */
  readonly slot: string
  readonly protocol: ProtocolName
  readonly upstreamModel: string
  readonly priority: number
  readonly weight: number
  readonly profile: RouteProfile
}

export type Models = {
  /** The model of that name, also where it is off; undefined where there is none. */
  readonly find: (id: string) => Model | undefined | Promise<Model | undefined>
  /** Those with a price, in the order of their names; where a mode is named, those that are sold in it. */
  readonly list: (mode?: Mode) => Promise<readonly Model[]>
  readonly close: () => void
}

type Parts = {
  readonly pool: pg.Pool
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'lagMs'>
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'cacheLoads'>
  /** By which operations models are asked. */
  readonly catalogue: Pick<Catalogue, 'operations'>
}

export const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}$/
const MAX_MODELS = 10_000
/** Names that nobody has are whatever callers think of. */
const MAX_UNKNOWN = 1_000
const PER_MODEL_LIMIT = 100
const UNREADABLE = 'unreadable' as const

export function createModels({ pool, feed, clock, metrics, catalogue }: Parts): Models {
  const shared = { feed, clock, metrics }
  const models = createCache({
    ...shared,
    name: 'models',
    topic: 'model',
    load: async (id) => (await loadModels(pool, id))[0]?.model,
    maxEntries: MAX_MODELS,
    maxAbsent: MAX_UNKNOWN,
  })
  const lists = createCache({
    ...shared,
    name: 'model_list',
    topic: 'models',
    load: async () => listModels(pool, protocolsSold(catalogue, switchesOf(await listSwitchedOff(pool)))),
    maxEntries: 1,
  })
  return {
    find(id) {
      if (!MODEL_NAME.test(id)) return undefined
      return models.peek(id) ?? models.get(id).catch(asUnavailable)
    },
    async list(mode) {
      return (await lists.get('all').catch(asUnavailable))?.[mode ?? 'all'] ?? []
    },
    close() {
      models.close()
      lists.close()
    },
  }
}

/** What a model costs, or the fault that says that nobody knows. */
export function priceOfModel({ id, price }: Pick<Model, 'id' | 'price'>): ModelPrice {
  if (price === null) throw noPrice(`the model ${id} has no price`)
  if (price === UNREADABLE) throw noPrice(`the price of the model ${id} can not be read`)
  return price
}

function noPrice(reason: string): Fault {
  return new Fault('invalid_billing_configuration', { cause: new Error(reason) })
}

/** In which protocols an upstream can be asked for it, in each mode. */
type Reach = { readonly mode: Mode; readonly protocol: ProtocolName }
type Loaded = { readonly model: Model; readonly reach: readonly Reach[] }

/** As PostgreSQL has them now, for whoever must not take what was read before. */
export async function listModels(on: Transactions, protocols: ReadonlySet<ProtocolName>) {
  return listed(await loadModels(on, null), protocols)
}

/** Those with a price; and for each mode those that can be asked in it, with the routes of protocols in which something is sold. */
function listed(loaded: readonly Loaded[], protocols: ReadonlySet<ProtocolName>) {
  const priced = loaded.filter(({ model: { price } }) => price !== null && price !== UNREADABLE)
  const of = (mode: Mode) => priced.map((one) => soldIn(mode, one, protocols)).filter(({ routes }) => routes.length > 0)
  return { all: priced.map(({ model }) => model), live: of('live'), test: of('test') }
}

function soldIn(wanted: Mode, { model, reach }: Loaded, protocols: ReadonlySet<ProtocolName>): Model {
  const own = reach.filter(({ mode }) => mode === wanted).map(({ protocol }) => protocol)
  const routes = model.routes.filter(({ protocol }) => protocols.has(protocol) && own.includes(protocol))
  return { ...model, routes }
}

const rate = readable(priceIn)
const pictures = z.record(z.string(), readable(picturePriceIn))
const videos = z.record(z.string(), readable(videoPriceIn))

/** A row of prices, as text, as what is charged by it. */
export const priceJson = z
  .object({
    version: z.int(),
    input: rate,
    output: rate,
    cache_read: rate.nullable(),
    cache_write: rate.nullable(),
    provider_input: rate.nullable(),
    provider_output: rate.nullable(),
    provider_cache_read: rate.nullable(),
    provider_cache_write: rate.nullable(),
    images: pictures.nullable(),
    provider_images: pictures.nullable(),
    videos: videos.nullable(),
    provider_videos: videos.nullable(),
    classes: classPricesForm.nullable(),
    provider_classes: classPricesForm.nullable(),
  })
  .transform((row, context): ModelPrice => {
    const rates = {
      input: { published: row.input, providerCost: row.provider_input },
      output: { published: row.output, providerCost: row.provider_output },
      cacheRead: {
        published: row.cache_read ?? row.input,
        providerCost: row.provider_cache_read ?? row.provider_input,
      },
      cacheWrite: {
        published: row.cache_write ?? row.input,
        providerCost: row.provider_cache_write ?? row.provider_input,
      },
    }
    const price = {
      version: String(row.version),
      images: row.images && ratesByKind(row.images, row.provider_images ?? {}),
      videos: row.videos && ratesByKind(row.videos, row.provider_videos ?? {}),
      rates,
    }
    if (row.classes === null) return price
    try {
      const plain = { ...rates, cache_read: rates.cacheRead, cache_write: rates.cacheWrite }
      return { ...price, classes: classPricesOf(plain, ownIn(row), row.classes, row.provider_classes ?? {}) }
    } catch {
      context.addIssue({ code: 'custom', message: 'is no price' })
      return z.NEVER
    }
  })

/** The plain classes that the price itself names. */
export function ownIn(row: { readonly cache_read: unknown; readonly cache_write: unknown }) {
  const caches = (['cache_read', 'cache_write'] as const).filter((name) => row[name] !== null)
  return ['input', 'output', ...caches] as const
}

function ratesByKind(
  published: Readonly<Record<string, UnitPrice>>,
  costs: Readonly<Record<string, UnitPrice>>,
): ReadonlyMap<string, ModelRate> {
  return new Map(
    Object.entries(published).map(([kind, price]) => [kind, { published: price, providerCost: costs[kind] ?? null }]),
  )
}

const tokens = z.int().positive()

/** The profile of a row of routes, as JSON. */
export const PROFILE_SQL = `jsonb_build_object('outputLimit', output_limit, 'unknown', unknown_members,
  'reasoning', reasoning, 'abort', on_abort, 'output', output_shown, 'tokenBytes', token_bytes, 'topSpeed', top_speed)`

const oneOf = <const Values extends readonly string[]>(values: Values) =>
  z.enum(values, `must be one of ${values.join(', ')}`)

export const routeProfile = z.object({
  outputLimit: z.string().nullable(),
  unknown: oneOf(['refuse', 'pass']),
  reasoning: oneOf(['within', 'apart']),
  abort: oneOf(['stops', 'runs_on']),
  output: oneOf(['seen', 'hidden']),
  tokenBytes: z.int('must be a whole number').min(1, 'must be 1 to 4').max(4, 'must be 1 to 4'),
  topSpeed: z.int('must be a whole number').min(1, 'must be above 0').max(100_000, 'must be at most 100000').nullable(),
}) satisfies z.ZodType<RouteProfile>

const modelRow = z
  .object({
    id: z.string(),
    display_name: z.string(),
    owned_by: z.string(),
    created_at: z.date(),
    context_window: tokens,
    output_cap: tokens,
    output_most: tokens,
    part_tokens: z.object({ image: tokens, audio: tokens, file: tokens }).partial(),
    tokenizer: z.enum(TOKENIZERS),
    price: z.union([z.null(), priceJson, z.unknown().transform(() => UNREADABLE)]),
    routes: z.array(
      z.object({
        id: z.string(),
        slot: z.string(),
        protocol: z.enum(PROTOCOL_NAMES),
        upstreamModel: z.string(),
        priority: z.int(),
        weight: z.int().positive(),
        profile: routeProfile,
      }),
    ),
    reach: z.array(z.object({ mode: z.enum(MODES), protocol: z.enum(PROTOCOL_NAMES) })),
    enabled: z.boolean(),
  })
  .transform((row): Loaded => {
    const { id, tokenizer, price, routes, reach } = row
    const { image, audio, file } = row.part_tokens
    const sold = soldAt(price, row.context_window)
    const limits = {
      ...(sold !== undefined && { sold }),
      contextWindow: row.context_window,
      outputCap: row.output_cap,
      outputMost: row.output_most,
      partTokens: {
        ...(image !== undefined && { image }),
        ...(audio !== undefined && { audio }),
        ...(file !== undefined && { file }),
      },
    }
    const model = { id, displayName: row.display_name, ownedBy: row.owned_by, createdAt: row.created_at }
    return { model: { ...model, limits, tokenizer, price, routes, ...(!row.enabled && { isOff: true }) }, reach }
  })

/** What requests may ask for at this price beyond plain tokens, and within which bounds. */
function soldAt(price: Model['price'], contextWindow: number): ModelLimits['sold'] {
  if (price === null || price === UNREADABLE || price.classes === undefined) return undefined
  const { toolCalls, toolInput } = price.classes
  return {
    needs: needsMet(price.classes, contextWindow),
    ...(toolCalls !== undefined && { toolCalls }),
    ...(toolInput !== undefined && { toolInput }),
  }
}

/** The model of that name, also where it is off, or all that are on. Prices pass as text, because JSON has no exact numbers. */
export async function loadModels(on: Transactions, id: string | null): Promise<readonly Loaded[]> {
  const { rows } = await queryOn(on)(
    `select id, enabled, display_name, owned_by, created_at, context_window, output_cap, output_most, part_tokens, tokenizer,
       (select jsonb_build_object('version', version, 'input', input::text, 'output', output::text,
            'cache_read', cache_read::text, 'cache_write', cache_write::text,
            'provider_input', provider_input::text, 'provider_output', provider_output::text,
            'provider_cache_read', provider_cache_read::text, 'provider_cache_write', provider_cache_write::text,
            'images', images, 'provider_images', provider_images,
            'videos', videos, 'provider_videos', provider_videos,
            'classes', classes, 'provider_classes', provider_classes)
          from model_prices where model = models.id order by version desc limit 1) as price,
       array(select jsonb_build_object('id', id, 'slot', slot, 'protocol', protocol, 'upstreamModel', upstream_model,
            'priority', priority, 'weight', weight, 'profile', ${PROFILE_SQL})
          from model_routes where model = models.id and enabled order by priority, id limit $2) as routes,
       array(select distinct jsonb_build_object('mode', mode, 'protocol', protocol) from upstreams join model_routes using (slot)
          where model = models.id and upstreams.enabled and model_routes.enabled) as reach
     from models where (enabled or $1::text is not null) and ($1::text is null or id = $1) order by id collate "C" limit $3`,
    [id, PER_MODEL_LIMIT, MAX_MODELS],
  )
  return z.array(modelRow).parse(rows)
}
