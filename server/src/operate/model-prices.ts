import type pg from 'pg'
import { z } from 'zod'
import { PART_CLASS_NAMES, SERVER_TOOLS } from '../catalogue/price-classes.ts'
import { decimalText, type Rational } from '../kernel/rational.ts'
import { type KindPrices, setModelPrice } from '../pricing/configure-models.ts'
import { belowCost, type Margin, marginsOf, marginText } from '../pricing/margins.ts'
import { setAccountModelTimes } from '../pricing/prices.ts'
import { readPrices } from '../pricing/set-model-price.ts'
import { inOpenWorkspace } from '../workspaces/closures.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { action, field, flag, listField } from './action.ts'
import { A_TIER, classPricesIn } from './class-prices.ts'
import { accountField, timesOf, timesText, unknown } from './fields.ts'

/** What models cost customers and us: `models price` and `models account`. */

const CLASS_NAMES = PART_CLASS_NAMES.join(', ')
const TOOL_NAMES = SERVER_TOOLS.join(', ')
const A_PICTURE = 'size/quality=usd, such as 1024x1024/high=0.167'
const A_VIDEO = 'resolution=usd, such as 720P=0.10'

const usd = (description: string) => field('usd', description, String).optional()
const several = (shown: string, description: string) => listField(shown, description, (texts) => texts).optional()
const kinds = (shown: string, such: string, description: string) =>
  listField(shown, description, (texts) => kindPrices(texts, such)).optional()

const input = z.object({
  model: field('model', 'id of the model', String),
  input: usd('price per million input tokens (required without --image and --video)'),
  output: usd('price per million output tokens (required without --image and --video)'),
  cacheRead: usd('price per million cache-read tokens (default: --input)'),
  cacheWrite: usd('price per million cache-write tokens (default: --input)'),
  providerInput: usd('cost: what the provider charges us per million input tokens (default: as before)'),
  providerOutput: usd('cost per million output tokens (default: as before)'),
  providerCacheRead: usd('cost per million cache-read tokens (default: as before)'),
  providerCacheWrite: usd('cost per million cache-write tokens (default: as before)'),
  class: several('class=usd', `price of a class of tokens, repeatable: ${CLASS_NAMES} (default: none)`),
  above: several(
    'tokens:class=usd,…',
    'prices of all classes when the input is longer than this, repeatable (default: none)',
  ),
  tier: several('tier=timesx', `price of a service tier, repeatable: ${A_TIER} (default: none)`),
  tool: several(
    'tool=usd',
    `price per call of a tool that the provider runs, repeatable: ${TOOL_NAMES} (default: none)`,
  ),
  toolCalls: field(
    'count',
    'tool calls held for, and sent, when a request (Responses) names no limit (default: the request must)',
    String,
  ).optional(),
  toolInput: field(
    'tokens',
    'maximum input tokens that one tool call adds (default: the context window)',
    String,
  ).optional(),
  noClasses: flag('remove all classes, steps, tiers and tools from the price'),
  providerClass: several('class=usd', 'cost of a class of tokens, repeatable (default: as before)'),
  providerAbove: several(
    'tokens:class=usd,…',
    'costs when the input is longer than this, repeatable (default: as before)',
  ),
  providerTier: several('tier=timesx', 'cost of a service tier, repeatable (default: as before)'),
  providerTool: several('tool=usd', 'cost per call of a tool, repeatable (default: as before)'),
  image: kinds(
    'size/quality=usd',
    A_PICTURE,
    'price per image, for models sold by the image, repeatable (default: none)',
  ),
  providerImage: kinds('size/quality=usd', A_PICTURE, 'cost per image, repeatable (default: as before)'),
  video: kinds(
    'resolution=usd',
    A_VIDEO,
    'price per second of video, for models sold by the second, repeatable (default: none)',
  ),
  providerVideo: kinds('resolution=usd', A_VIDEO, 'cost per second of video, repeatable (default: as before)'),
  belowCost: flag('allow a price below the cost (default: refuse it)'),
})

export const price = action({
  name: 'models price',
  summary:
    'set the price of a model in USD per million tokens, or per image or second of video; running calls keep their price',
  effect: 'writes',
  positional: ['model'],
  input,
  async run({ pool, by }, given) {
    const { model, noClasses, image, providerImage, video, providerVideo, belowCost: mayLose, ...tokenPrices } = given
    const { classes, providerClasses, prices } = classesIn(tokenPrices)
    if (noClasses && classes !== undefined)
      throw new Error('--no-classes removes what --class, --above, --tier and --tool set: do not give both')
    const wanted = {
      model,
      ...prices,
      ...(classes !== undefined && { classes }),
      ...(providerClasses !== undefined && { providerClasses }),
      ...(image !== undefined && { images: image }),
      ...(providerImage !== undefined && { providerImages: providerImage }),
      ...(video !== undefined && { videos: video }),
      ...(providerVideo !== undefined && { providerVideos: providerVideo }),
    }
    const version = await setModelPrice({ pool, by }, wanted, { mayEndClasses: noClasses, mayLose })
    const margins = (await marginsByModel(pool, [model])).get(model) ?? []
    return { model, version, prices, images: image, videos: video, classes, margins }
  },
  lines: ({ model, version, prices, images, videos, classes, margins }) => {
    const { input: perInput, output, cacheRead = perInput, cacheWrite = perInput } = prices
    const byKind = kindsText({ images, videos })
    return [
      byKind !== undefined
        ? `Price of ${model}, version ${version}: ${byKind}; tokens are free.`
        : `Price of ${model}, version ${version}, in USD per million tokens: ` +
          `input ${perInput}, output ${output}, cache read ${cacheRead}, cache write ${cacheWrite}.`,
      ...(classes === undefined ? [] : [`Further prices: ${JSON.stringify(classes)}`]),
      ...marginLines(margins),
    ]
  },
})

type Given = z.output<typeof input>
type Elsewhere = 'model' | 'noClasses' | 'belowCost' | 'image' | 'providerImage' | 'video' | 'providerVideo'

function classesIn(options: Omit<Given, Elsewhere>) {
  const { class: classes, above, tier, tool, toolCalls, toolInput, ...others } = options
  const { providerClass, providerAbove, providerTier, providerTool, ...prices } = others
  const given = { class: classes, above, tier, tool, toolCalls, toolInput }
  const costs = { class: providerClass, above: providerAbove, tier: providerTier, tool: providerTool }
  return { classes: classPricesIn(given), providerClasses: classPricesIn(costs), prices }
}

function kindPrices(texts: readonly string[], such: string): KindPrices {
  const prices: Record<string, string> = {}
  for (const text of texts) {
    const [, kind = '', amount = ''] = /^([^=]+)=(.+)$/.exec(text) ?? []
    if (kind === '') throw new Error(`${JSON.stringify(text)} must be ${such}`)
    if (Object.hasOwn(prices, kind)) throw new Error(`${kind} is given twice`)
    prices[kind] = amount
  }
  return prices
}

type ByKind = { readonly images?: KindPrices | null | undefined; readonly videos?: KindPrices | null | undefined }

/** Undefined where a model is sold by the token. */
export function kindsText({ images, videos }: ByKind): string | undefined {
  const list = (prices: KindPrices) => Object.entries(prices).map(([kind, amount]) => `${kind} ${amount}`)
  if (images) return `${list(images).join(', ')} USD per image`
  return videos ? `${list(videos).join(', ')} USD per second of video` : undefined
}

export const ownPrice = action({
  name: 'models account',
  summary: "set a customer's multiplier of a model's price, such as 0.8x, or none to remove it",
  effect: 'writes',
  positional: ['account', 'model', 'multiplier'],
  input: z.object({
    account: accountField(),
    model: field('model', 'id of the model', String),
    multiplier: field('times', 'multiplier of the price, such as 0.8x, or none', (text) =>
      text === 'none' ? null : timesOf(text),
    ),
    test: flag('for test money (default: live money)'),
    belowCost: flag('allow a price below the cost (default: refuse it)'),
  }),
  async run({ pool, by }, { account, model, multiplier, test, belowCost: mayLose }) {
    const workspace = await findWorkspace(pool, account).catch(unknown(`account ${account}`))
    const { id, liveAccountId, testAccountId } = workspace
    const margins = multiplier === null ? [] : await marginsAt(pool, model, multiplier)
    // Test money is nobody's, and sandboxes cost nothing.
    const below = mayLose || test ? undefined : belowCost(margins)
    if (below !== undefined)
      throw new Error(
        `${account} would pay less for ${model} than it costs us: ${below}. Correct the multiplier, or add --below-cost`,
      )
    const own = multiplier === null ? null : decimalText(multiplier)
    await inOpenWorkspace(pool, id, (on) =>
      setAccountModelTimes(on, test ? testAccountId : liveAccountId, model, own, by),
    )
    return { id, model, multiplier, margins }
  },
  lines: ({ id, model, multiplier, margins }) =>
    multiplier === null
      ? [`Account ${id} pays the standard price for ${model}.`]
      : [
          `Account ${id} pays ${timesText(multiplier)} the price of ${model}, also when that price changes.`,
          ...marginLines(margins),
        ],
})

function pricesOf(pool: pg.Pool, models: readonly string[]) {
  return readPrices((sql, values = []) => pool.query(sql, [...values]), models)
}

/** What is left of the price of each of these models that has one. */
export async function marginsByModel(
  pool: pg.Pool,
  models: readonly string[],
): Promise<ReadonlyMap<string, readonly Margin[]>> {
  return new Map([...(await pricesOf(pool, models))].map(([model, found]) => [model, marginsOf(found)]))
}

async function marginsAt(pool: pg.Pool, model: string, times: Rational): Promise<readonly Margin[]> {
  const found = (await pricesOf(pool, [model])).get(model)
  if (found === undefined) throw new Error(`${model} has no price: see farebox models price ${model}`)
  return marginsOf(found, times)
}

/** What is left when the upstream is paid; nothing where nobody has said what that costs. */
function marginLines(margins: readonly Margin[]): readonly string[] {
  return margins.length === 0 ? [] : [`Margin: ${marginsText(margins)}.`]
}

export function marginsText(margins: readonly Margin[]): string {
  return margins.map((margin) => `${margin.member} ${marginText(margin)}`).join(', ')
}
