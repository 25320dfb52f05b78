import { type Catalogue, isSoldByUnit, type Operation } from '../catalogue/operation.ts'
import { checkScopes } from '../identity/scopes.ts'
import { decimalText, type Rational } from '../kernel/rational.ts'
import type { Models } from '../pricing/models.ts'

/** What there is to allow a client: categories to tick, and names of operations and models. */
export type Offer = {
  readonly categories: readonly OfferedCategory[]
  /** How many operations some scopes let a client call. */
  readonly count: (scopes: readonly string[]) => number
  /** Scopes as they are kept. Throws a RangeError that says what is not there, and what is near. */
  readonly check: (scopes: readonly string[]) => Promise<readonly string[]>
  /** What an operation does, in a sentence. */
  readonly summaryOf: (operationId: string) => string | undefined
}

export type OfferedCategory = {
  readonly id: string
  readonly name: string
  readonly note: string
  readonly price: string
  readonly operations: number
  /** Whether it is ticked when nobody has chosen: what only reads, and costs little. */
  readonly isUsual: boolean
}

type Words = { readonly name: string; readonly note: string; readonly isUsual: boolean }

const WORDS: Readonly<Record<Operation['category'], Words>> = {
  models: { name: 'Models', note: 'Conversations, embeddings, images, reranking, research', isUsual: true },
  finance: { name: 'Company figures', note: 'Companies and their figures', isUsual: true },
  traffic: { name: 'Website visits', note: 'Websites and their visitors', isUsual: true },
  social: { name: 'Social', note: 'Posts, comments, tags; acting for linked accounts', isUsual: false },
  video: { name: 'Videos', note: 'Videos that models make', isUsual: false },
}

/** All that there are, whatever is sold. */
export const CATEGORIES = Object.keys(WORDS)

type Parts = {
  readonly catalogue: Catalogue
  /** The operations that are sold now. */
  readonly sold: () => readonly Operation[]
  readonly models: Pick<Models, 'list'>
}

export function createOffer({ catalogue, sold, models }: Parts): Offer {
  return {
    get categories() {
      return Object.entries(WORDS).flatMap(([id, words]) => {
        const own = sold().filter(({ category }) => category === id)
        return own.length === 0 ? [] : [{ id, ...words, price: priceOf(own), operations: own.length }]
      })
    },
    count: (scopes) => sold().filter(({ id, category }) => scopes.includes(id) || scopes.includes(category)).length,
    async check(scopes) {
      const known = (await models.list()).map(({ id }) => id)
      return checkScopes(scopes, { operations: catalogue.operations, models: known })
    },
    summaryOf: (id) => catalogue.find(id)?.summary,
  }
}

/** What is sold by the piece, from the least to the most. */
function priceOf(operations: readonly Operation[]): string {
  const prices = operations.flatMap((one) =>
    isSoldByUnit(one) && one.category !== 'models' ? [one.price.unitPrice] : [],
  )
  const [first, ...rest] = prices
  if (first === undefined) return operations[0]?.category === 'video' ? 'by the second' : 'by the token'
  const least = rest.reduce((one, other) => (isLess(other, one) ? other : one), first)
  const most = rest.reduce((one, other) => (isLess(one, other) ? other : one), first)
  return least === most ? shown(least) : `${shown(least)} to ${shown(most)}`
}

function isLess(one: Rational, other: Rational): boolean {
  return one.numerator * other.denominator < other.numerator * one.denominator
}

const PLACES = 9

function shown(price: Rational): string {
  return `$${decimalText(price, PLACES)}`
}
