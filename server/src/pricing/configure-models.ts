import type pg from 'pg'
import { z } from 'zod'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import { OUTPUT_LIMITS } from '../protocols/output-limits.ts'
import { type PartKind, PROTOCOL_NAMES, type ProtocolName } from '../protocols/protocol.ts'
import { PLAIN_PROFILE, type RouteProfile } from '../protocols/route-profile.ts'
import { type By, difference, type Facts, factsRow, record, SERVICE } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import type { Tokenizer } from '../upstreams/tokens/count-tokens.ts'
import { MODEL_NAME, PROFILE_SQL, routeProfile, TOKENIZERS } from './models.ts'
import { lockName, noSuchModel, requireModel } from './require-model.ts'
import { priceText } from './set-model-price.ts'

export { type KindPrices, type NewModelPrice, setModelPrice } from './set-model-price.ts'

/** What operators do with models. Every process follows within a second; calls under way go on as they began. */
type Parts = {
  readonly pool: pg.Pool
  /** Who does it, for the audit log; the service itself where left out. */
  readonly by?: By
}

/** What is left out or undefined stays as it is, or gets its default in a new model. */
export type ModelSettings = {
  readonly id: string
  readonly displayName?: string | undefined
  readonly ownedBy?: string | undefined
  readonly contextWindow?: number | undefined
  /** How long an answer may get where the caller names no limit. */
  readonly outputCap?: number | undefined
  /** The most that a caller may name. */
  readonly outputMost?: number | undefined
  /** The most tokens of one part of a kind; null to take that back. Kinds that are not named stay as they are. */
  readonly partTokens?: Readonly<Partial<Record<PartKind, number | null | undefined>>> | undefined
  readonly tokenizer?: Tokenizer | undefined
  readonly enabled?: boolean | undefined
}

const MOST_TOKENS = 1_000_000_000
const tokens = z
  .int({ error: ({ input }) => (input === undefined ? 'is needed for a new model' : 'must be a whole number') })
  .min(1, 'must be above 0')
  .max(MOST_TOKENS, `must be at most ${MOST_TOKENS}`)
const words = z.string().regex(/^\P{Cc}{1,200}$/u, 'must be 1 to 200 characters on one line')

const fields = z.object({
  id: z.string().regex(MODEL_NAME, 'must be letters, digits, ., _, :, /, @ and -, and begin with a letter or a digit'),
  displayName: words,
  ownedBy: words,
  contextWindow: tokens,
  outputCap: tokens,
  outputMost: tokens,
  partTokens: z.object({ image: tokens, audio: tokens, file: tokens }).partial(),
  tokenizer: z.enum(TOKENIZERS, `must be one of ${TOKENIZERS.join(', ')}`),
  enabled: z.boolean(),
})

const settings = fields
  .refine((model) => model.outputCap <= model.outputMost, { path: ['outputCap'], error: 'must be within outputMost' })
  .refine((model) => model.outputMost <= model.contextWindow, {
    path: ['outputMost'],
    error: 'must be within contextWindow',
  })

/** Makes a model, or changes what is named of one that is there. */
export async function saveModel({ pool, by = SERVICE }: Parts, given: ModelSettings): Promise<void> {
  await inTransaction(pool, async (query) => {
    await lockName(query, given.id)
    await keepModel(query, by, given)
  })
}

/** The same for whoever keeps others from changing the model. */
export async function keepModel(query: Query, by: By, given: ModelSettings): Promise<void> {
  const before = (await readSettings(query, [given.id])).get(given.id)
  const model = readOrRefuse(settingsAfter(before, given))
  await query(
    `insert into models
       (id, display_name, owned_by, context_window, output_cap, output_most, part_tokens, tokenizer, enabled)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (id) do update set display_name = excluded.display_name, owned_by = excluded.owned_by,
       context_window = excluded.context_window, output_cap = excluded.output_cap,
       output_most = excluded.output_most, part_tokens = excluded.part_tokens, tokenizer = excluded.tokenizer,
       enabled = excluded.enabled, changed_at = clock_timestamp()`,
    [
      ...[model.id, model.displayName, model.ownedBy, model.contextWindow, model.outputCap, model.outputMost],
      ...[model.partTokens, model.tokenizer, model.enabled],
    ],
  )
  const { id: subject, ...after } = model
  const action = before === undefined ? 'model.created' : 'model.changed'
  await record(query, by, { action, subject, ...difference(before ?? null, after) })
}

type ModelSwitch = { readonly id: string; readonly enabled: boolean; readonly reason: string }

/** Takes a model out of sale, or sells it again; false where it was so already. */
export function switchModel({ pool, by = SERVICE }: Parts, { id, enabled, reason }: ModelSwitch): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    await requireModel(query, id)
    const { rowCount } = await query(
      'update models set enabled = $2, changed_at = clock_timestamp() where id = $1 and enabled <> $2',
      [id, enabled],
    )
    if (rowCount === 0) return false
    const action = enabled ? 'model.switched_on' : 'model.switched_off'
    await record(query, by, { action, subject: id, before: { enabled: !enabled }, after: { enabled, reason } })
    return true
  })
}

/** What becomes of a model: what is named, what it had, and defaults; or what is wrong with that. */
export function settingsAfter(before: StandingSettings | undefined, given: ModelSettings) {
  const partTokens = without(null, { ...before?.partTokens, ...without(undefined, given.partTokens ?? {}) })
  return settings.safeParse({ ...defaultsFor(given), ...before, ...without(undefined, given), partTokens })
}

function defaultsFor({ id }: ModelSettings) {
  const owner = id.includes('/') ? id.slice(0, id.indexOf('/')) : 'system'
  return { displayName: id, ownedBy: owner, tokenizer: 'bytes_3', enabled: true }
}

function without(unwanted: null | undefined, given: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== unwanted))
}

const SETTINGS = `display_name as "displayName", owned_by as "ownedBy", context_window as "contextWindow",
  output_cap as "outputCap", output_most as "outputMost", part_tokens as "partTokens", tokenizer, enabled`

const standing = fields.omit({ id: true })
export type StandingSettings = z.output<typeof standing>

/** What is kept of each of these models that there is. */
export async function readSettings(
  query: Query,
  ids: readonly string[],
): Promise<ReadonlyMap<string, StandingSettings>> {
  const { rows } = await query(`select id, ${SETTINGS} from models where id = any ($1)`, [ids])
  return new Map(rows.map((row) => fields.parse(row)).map(({ id, ...kept }) => [id, kept]))
}

/** Removes a model with its routes. Its prices stay, so that no version of it is ever numbered twice. */
export async function removeModel({ pool, by = SERVICE }: Parts, id: string): Promise<void> {
  await inTransaction(pool, async (query) => {
    await lockName(query, id)
    const routes = await query(`select id, ${ROUTE} from model_routes where model = $1 order by id`, [id])
    const { rows } = await query(`delete from models where id = $1 returning ${SETTINGS}`, [id])
    if (rows.length === 0) throw noSuchModel(id)
    const before = { ...factsRow.parse(rows[0]), routes: z.array(factsRow).parse(routes.rows) }
    await record(query, by, { action: 'model.removed', subject: id, before, after: null })
  })
}

/** What is left out or undefined stays as it is, or gets its default in a new route. */
export type RouteSettings = {
  readonly model: string
  readonly slot: string
  readonly protocol: ProtocolName
  /** The model's name there; its own where left out. */
  readonly upstreamModel?: string
  /** The lowest is asked first. */
  readonly priority?: number | undefined
  readonly weight?: number | undefined
  readonly enabled?: boolean | undefined
  readonly profile?: { readonly [Name in keyof RouteProfile]?: RouteProfile[Name] | undefined } | undefined
}

function wholeNumber(least: number, most: number) {
  const rule = `must be a whole number from ${least} to ${most}`
  return z.int(rule).min(least, rule).max(most, rule)
}

const routeFields = z.object({
  slot: z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,99}$/, 'must be lower-case letters, digits, _, . and -'),
  protocol: z.enum(PROTOCOL_NAMES, `must be one of ${PROTOCOL_NAMES.join(', ')}`),
  upstreamModel: words,
  priority: wholeNumber(-1_000, 1_000),
  weight: wholeNumber(1, 1_000_000),
  enabled: z.boolean(),
  profile: routeProfile,
})

const route = routeFields.superRefine(({ protocol, profile: { outputLimit, reasoning } }, context) => {
  const limits = OUTPUT_LIMITS[protocol]
  const refuse = (name: string, message: string) =>
    context.addIssue({ code: 'custom', path: ['profile', name], message: `${message} in the protocol ${protocol}` })
  if (outputLimit !== null && !limits.includes(outputLimit))
    refuse('outputLimit', limits.length === 0 ? 'there is no limit' : `must be one of ${limits.join(', ')}`)
  if (reasoning === 'apart' && limits.length === 0) refuse('reasoning', 'there is none')
})

const NEW_ROUTE = { priority: 0, weight: 1, enabled: true, profile: PLAIN_PROFILE }

/** Makes a route of a model, or changes what is named of one of the same slot, protocol and name upstream. */
export async function saveRoute(
  { pool, ids, by = SERVICE }: Parts & { readonly ids: Ids },
  given: RouteSettings,
): Promise<Id> {
  const { model, upstreamModel = given.model } = given
  const changed = (before: typeof NEW_ROUTE) => {
    const profile = { ...before.profile, ...without(undefined, given.profile ?? {}) }
    return parse(route, { ...before, ...without(undefined, given), upstreamModel, profile })
  }
  const fresh = changed(NEW_ROUTE)
  return inTransaction(pool, async (query) => {
    await requireModel(query, model)
    const before = await readRoute(query, { ...given, upstreamModel })
    const saved = before === undefined ? fresh : changed(before)
    const { rows } = await query(
      `insert into model_routes (id, model, slot, protocol, upstream_model, priority, weight, enabled,
         output_limit, unknown_members, reasoning, on_abort, output_shown, token_bytes, top_speed)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
       on conflict (model, slot, protocol, upstream_model) do update
         set priority = excluded.priority, weight = excluded.weight, enabled = excluded.enabled,
           output_limit = excluded.output_limit, unknown_members = excluded.unknown_members,
           reasoning = excluded.reasoning, on_abort = excluded.on_abort, output_shown = excluded.output_shown,
           token_bytes = excluded.token_bytes, top_speed = excluded.top_speed
       returning id`,
      [
        ...[ids.next(), model, saved.slot, saved.protocol, upstreamModel, saved.priority, saved.weight, saved.enabled],
        ...[saved.profile.outputLimit, saved.profile.unknown, saved.profile.reasoning, saved.profile.abort],
        ...[saved.profile.output, saved.profile.tokenBytes, saved.profile.topSpeed],
      ],
    )
    const { id } = z.object({ id: z.string() }).parse(rows[0])
    await recordRoute(query, by, { model, id, before, saved })
    return id
  })
}

type SavedRoute = {
  readonly model: string
  readonly id: Id
  readonly before: Facts | undefined
  readonly saved: z.output<typeof routeFields>
}

async function recordRoute(query: Query, by: By, { model, id, before, saved }: SavedRoute): Promise<void> {
  const { slot, protocol, upstreamModel, ...rest } = saved
  const after = { ...rest, model, slot, protocol, upstreamModel }
  const changed = before === undefined ? difference(null, after) : difference(before, rest)
  const action = before === undefined ? 'route.created' : 'route.changed'
  await record(query, by, { action, subject: id, ...changed })
}

async function readRoute(query: Query, { model, slot, protocol, upstreamModel }: RouteSettings) {
  const { rows } = await query(
    `select priority, weight, enabled, ${PROFILE_SQL} as profile from model_routes
     where model = $1 and slot = $2 and protocol = $3 and upstream_model = $4`,
    [model, slot, protocol, upstreamModel],
  )
  if (rows[0] === undefined) return undefined
  return routeFields.pick({ priority: true, weight: true, enabled: true, profile: true }).parse(rows[0])
}

export async function removeRoute({ pool, by = SERVICE }: Parts, model: string, id: Id): Promise<void> {
  await inTransaction(pool, async (query) => {
    const { rows } = await query(`delete from model_routes where id = $1 and model = $2 returning ${ROUTE}`, [
      id,
      model,
    ])
    if (rows.length === 0) throw new Fault('resource_not_found', { detail: `The model ${model} has no route ${id}.` })
    const before = { ...factsRow.parse(rows[0]), model }
    await record(query, by, { action: 'route.removed', subject: id, before, after: null })
  })
}

/** A route as `routeFields` reads it. */
const ROUTE = `slot, protocol, upstream_model as "upstreamModel", priority, weight, enabled, ${PROFILE_SQL} as profile`

/** The slots that routes name. */
export async function listRouteSlots({ pool }: Parts): Promise<readonly string[]> {
  const { rows } = await pool.query('select distinct slot from model_routes order by slot limit $1', [LIST_LIMIT])
  return z
    .array(z.object({ slot: z.string() }))
    .parse(rows)
    .map(({ slot }) => slot)
}

const LIST_LIMIT = 1_000

const listedModel = fields.extend({
  createdAt: z.date(),
  changedAt: z.date(),
  price: priceText
    .omit({
      ...{ providerCacheRead: true, providerCacheWrite: true, providerImages: true, providerVideos: true },
      ...{ providerClasses: true },
    })
    .nullable(),
  routes: z.array(routeFields.extend({ id: z.string() })),
})

/** What operators see of a model: prices as they were written, and what is off too. */
export type ModelListed = z.output<typeof listedModel>

/** At most a thousand, in the order of their names; one where it is named. */
export async function listModels({ pool }: Parts, id?: string): Promise<readonly ModelListed[]> {
  const { rows } = await pool.query(
    `select id, ${SETTINGS}, created_at as "createdAt", changed_at as "changedAt",
       (select jsonb_build_object('version', version, 'input', input::text, 'output', output::text,
            'cacheRead', cache_read::text, 'cacheWrite', cache_write::text, 'providerInput', provider_input::text,
            'providerOutput', provider_output::text, 'images', images, 'videos', videos, 'classes', classes)
          from model_prices where model = models.id order by version desc limit 1) as price,
       array(select jsonb_build_object('id', id, 'slot', slot, 'protocol', protocol, 'upstreamModel', upstream_model,
            'priority', priority, 'weight', weight, 'enabled', enabled, 'profile', ${PROFILE_SQL})
          from model_routes where model = models.id order by priority, id limit $2) as routes
     from models where $1::text is null or id = $1 order by id collate "C" limit $2`,
    [id ?? null, LIST_LIMIT],
  )
  return z.array(listedModel).parse(rows)
}

const NAMES_LIMIT = 10_000
const nameRows = z.array(z.object({ id: z.string() }))

/** The names of all models, also of those that are off. */
export async function namesOfModels({ pool }: Parts): Promise<readonly string[]> {
  const { rows } = await pool.query('select id from models order by id limit $1', [NAMES_LIMIT])
  return nameRows.parse(rows).map(({ id }) => id)
}

function parse<T>(schema: z.ZodType<T>, given: unknown): T {
  return readOrRefuse(schema.safeParse(given))
}

function readOrRefuse<T>(parsed: z.ZodSafeParseResult<T>): T {
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw invalidRequest(`${issue?.path.join('.')}: ${issue?.message}.`)
}
