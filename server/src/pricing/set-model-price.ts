import type pg from 'pg'
import { z } from 'zod'
import { invalidRequest } from '../kernel/fault.ts'
import { type By, difference, factsRow, record, SERVICE } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { type ClassPricesText, classPricesForm, classPricesOf } from './class-prices.ts'
import { belowCost, marginsOf } from './margins.ts'
import { ownIn } from './models.ts'
import { requireModel } from './require-model.ts'
import { picturePriceIn, priceIn, videoPriceIn } from './unit-prices.ts'

type Parts = {
  readonly pool: pg.Pool
  /** Who does it, for the audit log; the service itself where left out. */
  readonly by?: By
}

/** Decimal USD for a million tokens, for a picture or for a second of video: a model is sold in one of these ways. */
export type NewModelPrice = {
  readonly model: string
  /** Needed, with output, where neither pictures nor videos have a price. */
  readonly input?: string | undefined
  readonly output?: string | undefined
  /** As input where left out. */
  readonly cacheRead?: string | undefined
  readonly cacheWrite?: string | undefined
  /** What the upstream charges us. As in the version before where left out. */
  readonly providerInput?: string | undefined
  readonly providerOutput?: string | undefined
  readonly providerCacheRead?: string | undefined
  readonly providerCacheWrite?: string | undefined
  /** By `<size>/<quality>`, `auto` for what a request does not say. */
  readonly images?: KindPrices | undefined
  readonly providerImages?: KindPrices | undefined
  /** By resolution, such as `720P`. */
  readonly videos?: KindPrices | undefined
  readonly providerVideos?: KindPrices | undefined
  /** What it has beyond plain classes of tokens: see class-prices.ts. */
  readonly classes?: ClassPricesText | undefined
  readonly providerClasses?: ClassPricesText | undefined
}

/** What one piece costs, by its kind. */
export type KindPrices = Readonly<Record<string, string>>

/**
 * Sets what a model costs from now on, as a new version. Calls that have begun keep theirs. Whoever writes prices by hand says whether
 * classes of the price that stands are meant to end, because a version is given whole, and whether it is meant to lose money.
 */
export async function setModelPrice(
  { pool, by = SERVICE }: Parts,
  given: NewModelPrice,
  { mayEndClasses = true, mayLose = true }: { readonly mayEndClasses?: boolean; readonly mayLose?: boolean } = {},
): Promise<number> {
  const problem = problemIn(given)
  if (problem !== undefined) throw invalidRequest(problem)
  return inTransaction(pool, async (query) => {
    await requireModel(query, given.model)
    if (!mayEndClasses && given.classes === undefined) await requireNoClasses(query, given.model)
    if (!mayLose) await requireAboveCost(query, given)
    return keepModelPrice(query, by, given)
  })
}

async function requireAboveCost(query: Query, given: NewModelPrice): Promise<void> {
  const before = (await readPrices(query, [given.model])).get(given.model) ?? null
  const below = belowCost(marginsOf(priceAfter(before, given)))
  if (below !== undefined)
    throw invalidRequest(
      `${given.model} would be sold below cost: ${below}. Correct the price or the cost, or allow it with --below-cost.`,
    )
}

async function requireNoClasses(query: Query, model: string): Promise<void> {
  const classes = (await readPrices(query, [model])).get(model)?.classes ?? null
  if (classes !== null)
    throw invalidRequest(
      `The price of ${model} has classes, which would be removed: ${JSON.stringify(classes)}. Name them again, or remove them with --no-classes.`,
    )
}

/** The same for whoever keeps others from changing the model, and has seen that the price is readable. */
export async function keepModelPrice(query: Query, by: By, given: NewModelPrice): Promise<number> {
  const { model } = given
  const before = (await readPrices(query, [model])).get(model) ?? null
  const wanted = priceAfter(before, given)
  await query(
    `insert into model_prices (model, version, input, output, cache_read, cache_write,
       provider_input, provider_output, provider_cache_read, provider_cache_write, images, provider_images,
       videos, provider_videos, classes, provider_classes)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
    [
      ...[model, wanted.version, wanted.input, wanted.output, wanted.cacheRead, wanted.cacheWrite],
      ...[wanted.providerInput, wanted.providerOutput, wanted.providerCacheRead, wanted.providerCacheWrite],
      ...[wanted.images, wanted.providerImages, wanted.videos, wanted.providerVideos],
      ...[wanted.classes, wanted.providerClasses],
    ],
  )
  const after = (await readPrices(query, [model])).get(model)
  if (after === undefined) throw new Error(`the price of ${model} was not kept`)
  await record(query, by, { action: 'model.price_set', subject: model, ...difference(before, after) })
  return after.version
}

/** Why a price can't be read, or could not be worked out once it is kept; undefined where it can. */
export function problemIn(given: NewModelPrice): string | undefined {
  try {
    requireReadable(given)
    return undefined
  } catch (error) {
    if (error instanceof RangeError) return error.message
    throw error
  }
}

function requireReadable(given: NewModelPrice): void {
  const { model: _, images, providerImages, videos, providerVideos, classes, providerClasses, ...prices } = given
  for (const [name, text] of Object.entries(prices)) if (text !== undefined) requirePrice(name, text, priceIn)
  for (const kinds of [images, providerImages]) if (kinds !== undefined) requireKinds(kinds, PICTURES)
  for (const kinds of [videos, providerVideos]) if (kinds !== undefined) requireKinds(kinds, VIDEOS)
  if (images !== undefined && videos !== undefined) throw onlyOneWay()
  requireOneWay(prices, (images ?? videos) !== undefined)
  if (classes !== undefined) requireClasses(given, (images ?? videos) !== undefined)
  if (providerClasses !== undefined) classesIn(providerClasses, 'providerClasses')
}

/** The next version: what is given, whole, and what the upstream charges us as before where that is left out. */
export function priceAfter(before: PriceText | null, given: NewModelPrice): PriceText {
  return {
    version: (before?.version ?? 0) + 1,
    // Of a model that is sold by the piece, tokens cost nothing.
    input: given.input ?? '0',
    output: given.output ?? '0',
    cacheRead: given.cacheRead ?? null,
    cacheWrite: given.cacheWrite ?? null,
    providerInput: given.providerInput ?? before?.providerInput ?? null,
    providerOutput: given.providerOutput ?? before?.providerOutput ?? null,
    providerCacheRead: given.providerCacheRead ?? before?.providerCacheRead ?? null,
    providerCacheWrite: given.providerCacheWrite ?? before?.providerCacheWrite ?? null,
    images: given.images ?? null,
    providerImages: given.providerImages ?? before?.providerImages ?? null,
    videos: given.videos ?? null,
    providerVideos: given.providerVideos ?? before?.providerVideos ?? null,
    classes: given.classes === undefined ? null : factsRow.parse(given.classes),
    providerClasses:
      given.providerClasses === undefined ? (before?.providerClasses ?? null) : factsRow.parse(given.providerClasses),
  }
}

const kindsText = z.record(z.string(), z.string()).nullable()
export const priceText = z.object({
  version: z.int(),
  input: z.string(),
  output: z.string(),
  cacheRead: z.string().nullable(),
  cacheWrite: z.string().nullable(),
  /** What the upstream charges us; null where nobody has said it. */
  providerInput: z.string().nullable(),
  providerOutput: z.string().nullable(),
  providerCacheRead: z.string().nullable(),
  providerCacheWrite: z.string().nullable(),
  images: kindsText,
  providerImages: kindsText,
  videos: kindsText,
  providerVideos: kindsText,
  classes: factsRow.nullable(),
  providerClasses: factsRow.nullable(),
})

/** A version of a model's price, as it is written. */
export type PriceText = z.output<typeof priceText>

/** A row of prices as `priceText` reads it. */
export const PRICE_SQL = `version, input::text, output::text, cache_read::text as "cacheRead",
  cache_write::text as "cacheWrite", provider_input::text as "providerInput", provider_output::text as "providerOutput",
  provider_cache_read::text as "providerCacheRead", provider_cache_write::text as "providerCacheWrite",
  images, provider_images as "providerImages", videos, provider_videos as "providerVideos",
  classes, provider_classes as "providerClasses"`

/** The newest price of each of these models that has one. */
export async function readPrices(query: Query, models: readonly string[]): Promise<ReadonlyMap<string, PriceText>> {
  const { rows } = await query(
    `select distinct on (model) model, ${PRICE_SQL} from model_prices where model = any ($1)
     order by model, version desc`,
    [models],
  )
  const named = priceText.extend({ model: z.string() })
  return new Map(rows.map((row) => named.parse(row)).map(({ model, ...price }) => [model, price]))
}

type Sums = Omit<
  NewModelPrice,
  'model' | 'images' | 'providerImages' | 'videos' | 'providerVideos' | 'classes' | 'providerClasses'
>

/** Nothing may be charged twice, and nothing that has no price of its own may be asked for. */
function requireOneWay({ input, output, cacheRead, cacheWrite }: Sums, isByPiece: boolean): void {
  if (!isByPiece && (input === undefined || output === undefined))
    throw new RangeError(
      'A model needs a price for input and one for output, or prices per image or per second of video.',
    )
  if (isByPiece && (input ?? output ?? cacheRead ?? cacheWrite) !== undefined) throw onlyOneWay()
}

function onlyOneWay(): RangeError {
  return new RangeError('A model is sold per token, per image or per second of video: give prices of one kind.')
}

function classesIn(given: ClassPricesText, member: string): z.output<typeof classPricesForm> {
  const parsed = classPricesForm.safeParse(given)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new RangeError(`${[member, ...(issue?.path ?? [])].join('.')}: ${issue?.message}.`)
}

/** What can't be worked out when it is read must not be kept. */
function requireClasses({ classes = {}, ...given }: NewModelPrice, isByPiece: boolean): void {
  if (isByPiece) throw new RangeError('classes: only models that are sold per token have them.')
  const published = classesIn(classes, 'classes')
  const rate = (text = given.input) => ({ published: priceIn(text ?? '0'), providerCost: null })
  const plain = {
    input: rate(),
    output: rate(given.output),
    cache_read: rate(given.cacheRead),
    cache_write: rate(given.cacheWrite),
  }
  try {
    classPricesOf(
      plain,
      ownIn({ cache_read: given.cacheRead ?? null, cache_write: given.cacheWrite ?? null }),
      published,
    )
  } catch (error) {
    throw new RangeError(`classes: ${error instanceof Error ? error.message : 'cannot be read'}.`)
  }
}

type Kinds = {
  readonly member: string
  readonly kind: RegExp
  /** What a kind looks like. */
  readonly such: string
  readonly read: (text: string) => unknown
}

const PICTURES: Kinds = {
  member: 'images',
  kind: /^[A-Za-z0-9._-]{1,32}\/[A-Za-z0-9._-]{1,32}$/,
  such: 'size/quality, such as 1024x1024/high',
  read: picturePriceIn,
}
const VIDEOS: Kinds = {
  member: 'videos',
  kind: /^[1-9]\d{2,3}P$/,
  such: 'a resolution, such as 720P',
  read: videoPriceIn,
}
const KINDS_MOST = 100

function requireKinds(prices: KindPrices, { member, kind, such, read }: Kinds): void {
  const given = Object.entries(prices)
  if (given.length === 0 || given.length > KINDS_MOST)
    throw new RangeError(`${member}: give 1 to ${KINDS_MOST} prices.`)
  for (const [name, text] of given) {
    if (!kind.test(name)) throw new RangeError(`${member}: ${JSON.stringify(name)} must be ${such}.`)
    requirePrice(name, text, read)
  }
}

function requirePrice(name: string, text: string, read: (text: string) => unknown): void {
  try {
    read(text)
  } catch (error) {
    throw new RangeError(`${name}: ${error instanceof Error ? error.message : 'is not a price'}.`)
  }
}
