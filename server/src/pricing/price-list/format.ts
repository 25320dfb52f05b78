import { z } from 'zod'
import { nearest } from '../../kernel/nearest.ts'
import { type ClassPricesText, classPricesForm } from '../class-prices.ts'
import type { ModelSettings } from '../configure-models.ts'
import { MODEL_NAME, TOKENIZERS } from '../models.ts'
import { type NewModelPrice, problemIn } from '../set-model-price.ts'
import { picturePriceIn, priceIn, videoPriceIn } from '../unit-prices.ts'
import { PriceListError } from './problems.ts'
import { lineAt, plainValue, readTree, type Tree } from './tree.ts'

/** A price list: models with their limits and prices, as docs/price-lists.md describes the file. */
export type PriceList = { readonly models: readonly ListedModel[] }

export type ListedModel = {
  /** Where it begins in the file. */
  readonly line: number
  readonly settings: ModelSettings
  /** Undefined where the list says nothing of it. */
  readonly price: NewModelPrice | undefined
}

export const FORMAT = 'farebox-prices/1'
export const MODELS_MOST = 1_000

const text = z.string('must be a single value')
const count = text
  .regex(/^[1-9]\d{0,9}$/, 'must be a whole number above 0, written without separators')
  .transform(Number)
const countOrNone = z.union([z.literal('none').transform(() => null), count], 'must be a whole number above 0, or none')

/** A price that whoever keeps it can read. */
const usd = (read: (text: string) => unknown) =>
  text.superRefine((written, context) => {
    try {
      read(written)
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : 'is no price' })
    }
  })

const kinds = (read: (text: string) => unknown) => z.record(z.string(), usd(read), 'must have a price for each kind')
const tokens = usd(priceIn)

/** The object that class-prices.ts describes and judges; here whole numbers have yet to become numbers. */
const classes = z.unknown().transform((given, context): ClassPricesText => {
  const counted = withCounts(given)
  const parsed = classPricesForm.safeParse(counted)
  if (parsed.success) return counted as ClassPricesText
  for (const issue of parsed.error.issues) context.addIssue({ ...issue })
  return z.NEVER
})

const COUNTS: ReadonlySet<string> = new Set(['tokens', 'tool_calls', 'tool_input'])

function withCounts(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(withCounts)
  if (typeof given !== 'object' || given === null) return given
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      COUNTS.has(name) && typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : withCounts(value),
    ]),
  )
}

const price = z
  .strictObject({
    ...{ input: tokens, output: tokens, cache_read: tokens, cache_write: tokens },
    ...{ classes, images: kinds(picturePriceIn), videos: kinds(videoPriceIn) },
  })
  .partial()

const model = z
  .strictObject({
    ...{ display_name: text, owned_by: text },
    ...{ context_window: count, output_cap: count, output_most: count },
    ...{ image_tokens: countOrNone, audio_tokens: countOrNone, file_tokens: countOrNone },
    tokenizer: z.enum(TOKENIZERS, `must be one of ${TOKENIZERS.join(', ')}`),
    ...{ price, cost: price },
  })
  .partial()
  .refine(({ price: own, cost }) => own !== undefined || cost === undefined, {
    path: ['cost'],
    error: 'needs a price beside it: a price is set whole, with what it costs us',
  })

const file = z.strictObject({
  format: z.literal(FORMAT, `must be ${FORMAT}`),
  models: z
    .record(z.string().regex(MODEL_NAME, 'is no name of a model: letters, digits, ., _, :, /, @ and -'), model)
    .refine((models) => Object.keys(models).length <= MODELS_MOST, {
      error: `has more than ${MODELS_MOST} models: split it`,
    }),
})

/** Throws a PriceListError that names line, model and member of whatever is wrong. */
export function readPriceList(bytes: Uint8Array): PriceList {
  const tree = readTree(bytes)
  const parsed = file.safeParse(plainValue(tree))
  if (!parsed.success) throw new PriceListError(parsed.error.issues.flatMap((issue) => problemsOf(tree, issue)))
  const models = Object.entries(parsed.data.models).map(([id, listed]) => ({
    line: lineAt(tree, ['models', id]),
    ...listedModel(id, listed),
  }))
  const problems = models.flatMap(({ settings: { id }, price: given }) => unreadableIn(tree, id, given))
  if (problems.length > 0) throw new PriceListError(problems)
  return { models }
}

function listedModel(id: string, given: z.output<typeof model>): Omit<ListedModel, 'line'> {
  return {
    settings: {
      id,
      displayName: given.display_name,
      ownedBy: given.owned_by,
      contextWindow: given.context_window,
      outputCap: given.output_cap,
      outputMost: given.output_most,
      partTokens: { image: given.image_tokens, audio: given.audio_tokens, file: given.file_tokens },
      tokenizer: given.tokenizer,
    },
    price: given.price && newPrice(id, given.price, given.cost ?? {}),
  }
}

type Price = z.output<typeof price>

function newPrice(id: string, own: Price, cost: Price): NewModelPrice {
  const given = {
    ...{ input: own.input, output: own.output, cacheRead: own.cache_read, cacheWrite: own.cache_write },
    ...{ classes: own.classes, images: own.images, videos: own.videos },
    ...{ providerInput: cost.input, providerOutput: cost.output },
    ...{ providerCacheRead: cost.cache_read, providerCacheWrite: cost.cache_write },
    ...{ providerClasses: cost.classes, providerImages: cost.images, providerVideos: cost.videos },
  }
  return { model: id, ...named(given) }
}

type Named<Given> = { [Name in keyof Given]?: Exclude<Given[Name], undefined> }

/** Without what is undefined. */
function named<Given extends object>(given: Given): Named<Given> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Named<Given>
}

/** What only a price as a whole can have wrong, in the words of who keeps it. */
function unreadableIn(tree: Tree, id: string, given: NewModelPrice | undefined): readonly string[] {
  const problem = given && problemIn(given)
  return problem === undefined ? [] : [problemAt(tree, ['models', id, 'price'], problem)]
}

function problemsOf(tree: Tree, issue: z.core.$ZodIssue): readonly string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) =>
      problemAt(tree, [...issue.path, key], `is not a member here${hintFor(issue.path, key)}`),
    )
  if (issue.code === 'invalid_key')
    return [problemAt(tree, issue.path, issue.issues[0]?.message ?? 'is no name that is taken')]
  return [problemAt(tree, issue.path, issue.message)]
}

function problemAt(tree: Tree, path: readonly PropertyKey[], what: string): string {
  const [top, id, ...members] = path.map(String)
  const where = top === 'models' && id !== undefined ? [id, members.join('.')] : [path.map(String).join('.')]
  const said = where.filter((part) => part !== '').map(readable)
  return `line ${lineAt(tree, path)}: ${[...said, what].join(': ')}`
}

function readable(name: string): string {
  return /^[\w.:/@-]+$/.test(name) ? name : JSON.stringify(name)
}

/** A hint for a mistyped member. */
function hintFor(path: readonly PropertyKey[], key: string): string {
  const known = path.length === 0 ? file.shape : path.length === 2 ? model.shape : price.shape
  const near = nearest(key, Object.keys(known))
  return near === undefined ? '' : ` (did you mean ${near}?)`
}
