import type { Operation } from '../../catalogue/operation.ts'
import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { PriceBook } from '../../pricing/price-book.ts'
import { chip, hasWords, wordsIn } from '../filter.ts'
import type { KeptPrices } from '../kept-prices.ts'
import { asPrice, shownUsd } from '../money.ts'
import type { Shell } from '../shell.ts'
import { staleNote } from '../stale-note.ts'
import { CATEGORIES, limitsOf, priceOf, type ShownPrice } from './words.ts'

type Parts = { readonly shell: Shell; readonly prices: KeptPrices }

/** Points stand under each other down to a hundred-thousandth of a dollar; finer prices stand out by themselves. */
const PLACES = 5
const COLUMNS = 6

/** Every operation, its price and its limits; by a word or a category where one is asked for. */
export function catalogueList({ shell, prices }: Parts): PageRoute {
  function answer(wanted: Operation['category'] | undefined, words: string) {
    const book = prices.now()
    const { sold: operations } = book
    const categories = categoriesOf(operations)
    const found = operations.filter((one) => (wanted === undefined || one.category === wanted) && matches(one, words))
    const groups = categories.map((name) => [name, found.filter(({ category }) => category === name)] as const)
    return shell.page({
      title: 'Catalogue',
      description: `${countText(operations.length)} behind one key, each with its price and its limits.`,
      path: '/catalogue',
      section: 'catalogue',
      main: html`<div class="fb-wrap">
<div class="lead"><h1>Catalogue</h1><p>${countText(operations.length)} behind one key. Prices are published estimates in USD; an account with a price of its own, or with a plan, pays that. A quote tells what you pay before you call. Every operation counts against the requests a minute of its key.</p></div>
${staleNote(prices)}
<form class="finder" action="/catalogue" role="search" aria-label="Operations"><div class="fb-affix"><span>${icon('search')}</span><input class="fb-input fb-input--small" type="search" name="q" maxlength="100" value="${words}" aria-label="Search operations" placeholder="comments under a reel"></div><button class="fb-button fb-button--quiet" type="submit">Search</button>
<nav class="chips" aria-label="Categories">${chip('/catalogue', `All ${operations.length}`, wanted === undefined)}${categories.map((name) => chip(`/catalogue?category=${name}`, `${CATEGORIES[name].title} ${operations.filter(({ category }) => category === name).length}`, wanted === name))}</nav></form>
${operations.length === 0 ? html`<p class="source">Nothing is sold here yet. Ask the operator when calls can be made.</p>` : found.length === 0 ? html`<p class="source">No operation matches. <a href="/catalogue">See all</a>, or <a href="/search?q=${encodeURIComponent(words)}">search the whole site</a>.</p>` : table(groups, book)}
<p class="source"><span><b>Pending</b> means that the upstream’s definition is not public: request and answer pass through as they are. <b>Also limited by</b> is in addition to the requests per minute of the tier; tokens per minute and concurrency are those of the tier.</span></p>
</div>`,
    })
  }

  return {
    method: 'GET',
    path: '/catalogue',
    answer: ({ query }) =>
      answer(
        categoriesOf(prices.now().sold).find((name) => name === query.get('category')),
        wordsIn(query),
      ),
  }
}

function categoriesOf(operations: readonly Operation[]): readonly Operation['category'][] {
  return [...new Set(operations.map(({ category }) => category))]
}

const countText = (count: number) => (count === 1 ? '1 operation' : `${count} operations`)

/** By its name and what it does. */
function matches({ id, summary, category }: Operation, words: string): boolean {
  return hasWords(`${id} ${id.replaceAll('_', ' ')} ${summary} ${category}`, words)
}

function table(groups: readonly (readonly [Operation['category'], readonly Operation[]])[], book: PriceBook): Html {
  const head = ['Operation', 'What it does', 'Price, USD', 'per', 'Also limited by', 'Definition'] as const
  return html`<table class="fb-table sheet"><thead><tr>${head.map((title) => html`<th scope="col"${title === 'Price, USD' || title === 'Definition' ? html` class="fb-end"` : undefined}>${title}</th>`)}</tr></thead>
${groups.filter(([, found]) => found.length > 0).map(([name, found]) => html`<tbody><tr class="group"><th scope="rowgroup" colspan="${COLUMNS}">${CATEGORIES[name].title}<small>${CATEGORIES[name].note}</small></th></tr>${found.map((one) => row(one, book))}</tbody>`)}</table>`
}

function row(operation: Operation, book: PriceBook): Html {
  const { id, summary, definition } = operation
  const price = priceOf(operation, book)
  return html`<tr><th scope="row"><a href="/catalogue/${id}">${id}</a></th><td class="what">${summary}</td><td class="price fb-end">${priceCell(price)}</td><td class="unit">${unitOf(price)}</td><td class="lim">${limitsOf(operation).join(', ')}</td><td class="state fb-end">${definition === 'complete' ? html`<span class="fb-dim">Complete</span>` : pendingBadge()}</td></tr>`
}

function priceCell(price: ShownPrice): Html | string {
  if (price.by === 'nothing') return 'Free'
  if (price.by === 'model') return html`<a href="/models">by model</a>`
  return price.by === 'nobody'
    ? 'Not sold at the moment'
    : shownUsd(asPrice(price.million ?? price.usd), { places: PLACES })
}

function unitOf(price: ShownPrice): string {
  if (price.by === 'unit' && price.million !== undefined) return `million ${price.unit}s`
  return 'unit' in price ? price.unit : ''
}

export function pendingBadge(): Html {
  return html`<span class="fb-badge">${icon('clock')}Pending</span>`
}
