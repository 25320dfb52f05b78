import { GROUPS, type LimitName } from '../../catalogue/limit-groups.ts'
import { isSoldByUnit, isTask, type Operation } from '../../catalogue/operation.ts'
import { TIERS } from '../../catalogue/tiers.ts'
import { decimalText } from '../../kernel/rational.ts'
import type { PriceBook } from '../../pricing/price-book.ts'
import { withCommas } from '../money.ts'

export const CATEGORIES: Readonly<Record<Operation['category'], { readonly title: string; readonly note: string }>> = {
  models: { title: 'Models', note: 'in the protocol of your SDK; the price of a token is its model’s' },
  video: { title: 'Video', note: 'made as a task that takes minutes' },
  social: { title: 'Social', note: 'posts, comments, tags and people' },
  finance: { title: 'Finance', note: 'companies and their figures' },
  traffic: { title: 'Traffic', note: 'visits of websites' },
}

const perMinute = (count: number) => `${withCommas(count)} requests a minute`

const LIMITS: Readonly<Record<LimitName, string>> = {
  tokens: 'tokens a minute',
  concurrency: 'calls at once',
  deep_research: perMinute(GROUPS.deep_research.requestsPerMinute),
  generate_content: perMinute(GROUPS.generate_content.requestsPerMinute),
  images: perMinute(GROUPS.images.requestsPerMinute),
  video_tasks: `${GROUPS.video_tasks.tasksAtOnce} tasks at once`,
}

/** What limits it beside the requests a minute of every key. */
export function limitsOf({ limits }: Operation): readonly string[] {
  return limits.map((name) => LIMITS[name])
}

type TierMember = keyof (typeof TIERS)['free']

/** What the tiers have of something, in their order. */
export function tiersOf(member: TierMember): string {
  return Object.values(TIERS)
    .map((tier) => withCommas(tier[member]))
    .join(' · ')
}

/** What an operation costs as it is published today. */
export type ShownPrice =
  | { readonly by: 'nothing' }
  | { readonly by: 'model'; readonly unit: string }
  | {
      readonly by: 'unit'
      readonly usd: string
      /** What a million of them cost, where that is how they are told. */
      readonly million: string | undefined
      readonly unit: string
      readonly version: string
    }
  | { readonly by: 'nobody' }

const USD_PLACES = 9
/** Of a million units: nano-USD become USD by nine places, of which a million takes six. */
const USD_PLACES_OF_A_MILLION = 3

export function priceOf(operation: Operation, book: Pick<PriceBook, 'operations'>): ShownPrice {
  if (operation.protocol?.endsWith('_count_tokens')) return { by: 'nothing' }
  if (isTask(operation)) return { by: 'model', unit: 'second' }
  if (operation.protocol === 'openai_images') return { by: 'model', unit: 'picture or token' }
  if (!isSoldByUnit(operation)) return { by: 'model', unit: 'token' }
  const { unit, unitPrice } = operation.price
  const isSet = book.operations.has(operation.id)
  const set = book.operations.get(operation.id)
  // What can't be read is no price: nobody can call it then.
  if (isSet && set === undefined) return { by: 'nobody' }
  const price = set?.unitPrice ?? unitPrice
  const version = set?.version ?? '0'
  const million = unit === 'token' ? decimalText(price, USD_PLACES_OF_A_MILLION) : undefined
  return { by: 'unit', usd: decimalText(price, USD_PLACES), million, unit, version }
}
