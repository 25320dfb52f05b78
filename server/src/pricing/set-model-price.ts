import type pg from 'pg'
import { z } from 'zod'
import type { Fault } from '../kernel/fault.ts'
import { type By, difference, factsRow, record, SERVICE } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { type ClassPricesText, classPricesForm, classPricesOf } from './class-prices.ts'
import { ownIn } from './models.ts'
import { refusal, requireModel } from './require-model.ts'
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
  readonly input?: string
  readonly output?: string
  /** As input where left out. */
  readonly cacheRead?: string
  readonly cacheWrite?: string
  /** What the upstream charges us. As in the version before where left out. */
  readonly providerInput?: string
  readonly providerOutput?: string
  readonly providerCacheRead?: string
  readonly providerCacheWrite?: string
  /** By `<size>/<quality>`, `auto` for what a request does not say. */
  readonly images?: KindPrices
  readonly providerImages?: KindPrices
  /** By resolution, such as `720P`. */
  readonly videos?: KindPrices
  readonly providerVideos?: KindPrices
  /** What it has beyond plain classes of tokens: see class-prices.ts. */
  readonly classes?: ClassPricesText
  readonly providerClasses?: ClassPricesText
}

/** What one piece costs, by its kind. */
export type KindPrices = Readonly<Record<string, string>>

/** Sets what a model costs from now on, as a new version. Calls that have begun keep theirs. */
export async function setModelPrice({ pool, by = SERVICE }: Parts, given: NewModelPrice): Promise<number> {
  const { model, images, providerImages, videos, providerVideos, classes, providerClasses, ...prices } = given
  for (const [name, text] of Object.entries(prices)) if (text !== undefined) requirePrice(name, text, priceIn)
  for (const kinds of [images, providerImages]) if (kinds !== undefined) requireKinds(kinds, PICTURES)
  for (const kinds of [videos, providerVideos]) if (kinds !== undefined) requireKinds(kinds, VIDEOS)
  if (images !== undefined && videos !== undefined) throw onlyOneWay()
  const { input, output } = (images ?? videos) === undefined ? tokenPrices(prices) : withoutTokens(prices)
  if (classes !== undefined) requireClasses(given, (images ?? videos) !== undefined)
  if (providerClasses !== undefined) classesIn(providerClasses, 'providerClasses')
  return inTransaction(pool, async (query) => {
    await requireModel(query, model)
    const before = await readPrice(query, model)
    await query(
      `with newest as (select * from model_prices where model = $1 order by version desc limit 1)
       insert into model_prices (model, version, input, output, cache_read, cache_write,
         provider_input, provider_output, provider_cache_read, provider_cache_write, images, provider_images,
         videos, provider_videos, classes, provider_classes)
       select $1, coalesce((select version from newest), 0) + 1, $2, $3, $4, $5,
         coalesce($6, (select provider_input from newest)), coalesce($7, (select provider_output from newest)),
         coalesce($8, (select provider_cache_read from newest)), coalesce($9, (select provider_cache_write from newest)),
         $10, coalesce($11, (select provider_images from newest)),
         $12, coalesce($13, (select provider_videos from newest)),
         $14, coalesce($15, (select provider_classes from newest))`,
      [
        ...[model, input, output, prices.cacheRead, prices.cacheWrite],
        ...[prices.providerInput, prices.providerOutput, prices.providerCacheRead, prices.providerCacheWrite],
        ...[images, providerImages, videos, providerVideos, classes, providerClasses],
      ],
    )
    const after = await readPrice(query, model)
    if (after === null) throw new Error(`the price of ${model} was not kept`)
    await record(query, by, { action: 'model.price_set', subject: model, ...difference(before, after) })
    return after.version
  })
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

/** The newest price of a model, as it is written. */
async function readPrice(query: Query, model: string): Promise<z.output<typeof priceText> | null> {
  const { rows } = await query(
    `select version, input::text, output::text, cache_read::text as "cacheRead", cache_write::text as "cacheWrite",
       provider_input::text as "providerInput", provider_output::text as "providerOutput",
       provider_cache_read::text as "providerCacheRead", provider_cache_write::text as "providerCacheWrite",
       images, provider_images as "providerImages", videos, provider_videos as "providerVideos",
       classes, provider_classes as "providerClasses"
     from model_prices where model = $1 order by version desc limit 1`,
    [model],
  )
  return priceText.optional().parse(rows[0]) ?? null
}

type Sums = Omit<
  NewModelPrice,
  'model' | 'images' | 'providerImages' | 'videos' | 'providerVideos' | 'classes' | 'providerClasses'
>
type TokenPrices = { readonly input: string; readonly output: string }

function tokenPrices({ input, output }: Sums): TokenPrices {
  if (input !== undefined && output !== undefined) return { input, output }
  throw refusal('A model needs a price of its input and one of its output, or prices of pictures or videos.')
}

/** Nothing may be charged twice, and nothing that has no price of its own may be asked for. */
function withoutTokens({ input, output, cacheRead, cacheWrite }: Sums): TokenPrices {
  if ((input ?? output ?? cacheRead ?? cacheWrite) === undefined) return { input: '0', output: '0' }
  throw onlyOneWay()
}

function onlyOneWay(): Fault {
  return refusal('A model is sold by the token, the picture or the second of video: give prices of one of them.')
}

function classesIn(given: ClassPricesText, member: string): z.output<typeof classPricesForm> {
  const parsed = classPricesForm.safeParse(given)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw refusal(`${[member, ...(issue?.path ?? [])].join('.')}: ${issue?.message}.`)
}

/** What can't be worked out when it is read must not be kept. */
function requireClasses({ classes = {}, ...given }: NewModelPrice, isByPiece: boolean): void {
  if (isByPiece) throw refusal('classes: a model that is sold by the piece has none.')
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
    throw refusal(`classes: ${error instanceof Error ? error.message : 'can not be read'}.`)
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
  if (given.length === 0 || given.length > KINDS_MOST) throw refusal(`${member}: 1 to ${KINDS_MOST} can have a price.`)
  for (const [name, text] of given) {
    if (!kind.test(name)) throw refusal(`${member}: ${JSON.stringify(name)} must be ${such}.`)
    requirePrice(name, text, read)
  }
}

function requirePrice(name: string, text: string, read: (text: string) => unknown): void {
  try {
    read(text)
  } catch (error) {
    throw refusal(`${name}: ${error instanceof Error ? error.message : 'is no price'}.`)
  }
}
