import { type Html, html } from '../../kernel/html.ts'
import { once } from '../../kernel/once.ts'
import { icon } from '../../pages/icons.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { Model } from '../../pricing/models.ts'
import { shownModel } from '../../pricing/shown-model.ts'
import { chip, hasWords, wordsIn } from '../filter.ts'
import type { KeptPrices } from '../kept-prices.ts'
import { asPrice, shownUsd, withCommas } from '../money.ts'
import type { Shell } from '../shell.ts'
import { staleNote } from '../stale-note.ts'
import { testModeNote } from '../test-mode-note.ts'
import { type Kind, soldAs } from './calculator.ts'
import { isForTests, testsLast } from './for-tests.ts'

type Parts = { readonly shell: Shell; readonly prices: KeptPrices }

/** What is shown at once: an installation may sell thousands. */
const SHOWN_MOST = 300
const PLACES = 3

const KIND_TITLES: Readonly<Record<Kind, string>> = {
  conversation: 'Conversations',
  vectors: 'Vectors',
  pictures: 'Pictures',
  videos: 'Videos',
}
const KINDS: readonly Kind[] = ['conversation', 'vectors', 'pictures', 'videos']

type Shown = ReturnType<typeof shownModel>
type Listed = {
  readonly model: Model
  readonly kind: Kind
  /** What it is found by. */
  readonly words: string
  /** Made for those that are shown, once for a price book. */
  readonly shown: () => Shown
}

/** Every model that is sold, with its prices; by a word or a kind where one is asked for. */
export function modelList({ shell, prices }: Parts): PageRoute {
  let known: { readonly of: readonly Model[]; readonly listed: readonly Listed[] } | undefined

  /** Once for a price book, not for each who asks. */
  function listedNow(): readonly Listed[] {
    const { models } = prices.now()
    if (known?.of !== models) known = { of: models, listed: testsLast(models).flatMap(listedOf) }
    return known.listed
  }

  function answer(kind: Kind | undefined, words: string) {
    const listed = listedNow()
    const matching = listed.filter((one) => (kind === undefined || one.kind === kind) && hasWords(one.words, words))
    const found = matching.slice(0, SHOWN_MOST)
    const left = matching.length - found.length
    const present = KINDS.filter((one) => listed.some((model) => model.kind === one))
    const count = (one: Kind) => listed.filter((model) => model.kind === one).length
    return shell.page({
      title: 'Models and prices',
      description: 'Every model that is sold here, its exact prices, their history, and what a call would cost.',
      path: '/models',
      section: 'models',
      main: html`<div class="fb-wrap models">
<div class="lead"><h1>Models and prices</h1><p>Prices are published estimates in USD, exact to their last place. Tokens that are read from a cache or written to one have prices of their own. A call is settled at the version at which it began. Each model has a page with its history and a calculator.</p></div>
${staleNote(prices)}${testModeNote(prices.now())}
<form class="finder" action="/models" role="search" aria-label="Models">${kind === undefined ? undefined : html`<input type="hidden" name="kind" value="${kind}">`}<div class="fb-affix"><span>${icon('search')}</span><input class="fb-input fb-input--small" type="search" name="q" maxlength="100" value="${words}" aria-label="Search models" placeholder="name or owner"></div><button class="fb-button fb-button--quiet" type="submit">Filter</button>
<nav class="chips" aria-label="Kinds of models">${chip('/models', `All ${listed.length}`, kind === undefined)}${present.map((one) => chip(`/models?kind=${one}`, `${KIND_TITLES[one]} ${count(one)}`, kind === one))}</nav></form>
${found.length === 0 ? html`<p class="source"><span>${listed.length === 0 ? 'No model is sold here yet.' : html`No model matches. <a href="/models">See all</a>.`}</span></p>` : undefined}
${sections(found)}
${left > 0 ? html`<p class="source"><span>${withCommas(left)} more are not shown: look for them by their name.</span></p>` : undefined}
<p class="source"><span>A model without a price is not sold: calls of it are refused. Where a price of cached tokens is not set, they cost what input costs.</span></p>
</div>`,
    })
  }

  return {
    method: 'GET',
    path: '/models',
    answer: ({ query }) =>
      answer(
        KINDS.find((one) => one === query.get('kind')),
        wordsIn(query),
      ),
  }
}

function listedOf(model: Model): readonly Listed[] {
  const sold = soldAs(model)
  if (sold === undefined) return []
  const words = `${model.id} ${model.displayName} ${model.ownedBy}`
  return [{ model, kind: sold.kind, words, shown: once(() => shownModel(model)) }]
}

function sections(found: readonly Listed[]): Html {
  const [tests, others] = [
    found.filter(({ model }) => isForTests(model)),
    found.filter(({ model }) => !isForTests(model)),
  ]
  const ofKind = (some: readonly Listed[], kind: Kind) => some.filter((one) => one.kind === kind)
  const kindsOf = (some: readonly Listed[]) => KINDS.filter((kind) => ofKind(some, kind).length > 0)
  return html`${kindsOf(others).map((kind) => section(kind, ofKind(others, kind)))}${kindsOf(tests).map((kind) => section(kind, ofKind(tests, kind), true))}`
}

function section(kind: Kind, found: readonly Listed[], areForTests = false): Html {
  const title = areForTests ? `For tests: ${KIND_TITLES[kind].toLowerCase()}` : KIND_TITLES[kind]
  const id = areForTests ? `t-${kind}` : `k-${kind}`
  const table = kind === 'pictures' || kind === 'videos' ? byPiece(kind, found) : byToken(kind, found)
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title} ${kind === 'conversation' || kind === 'vectors' ? html`<small>USD per million tokens</small>` : undefined}</h2>${areForTests ? html`<p class="fb-soft">Each fails in a way of its own, so that you can try what your program does then.</p>` : undefined}<div class="fb-scroll" tabindex="0" role="region" aria-label="Models: ${title}">${table}</div></section>`
}

const usd = (text: string | undefined) => (text === undefined ? undefined : shownUsd(asPrice(text), { places: PLACES }))

/** USD for a million tokens. */
function byToken(kind: Kind, found: readonly Listed[]): Html {
  const isText = kind === 'conversation'
  const head = isText ? ['Input', 'Output', 'Cache read', 'Cache write'] : ['Input']
  const classes = isText ? ['input', 'output', 'cache_read', 'cache_write'] : ['input']
  const row = ({ model, shown: show }: Listed) => {
    const shown = show()
    const rates = shown.pricing?.per_million_tokens ?? {}
    return html`<tr><th scope="row">${nameOf(model)}</th>${classes.map((name) => html`<td class="fb-end">${usd(rates[name])}</td>`)}<td class="fb-end">${withCommas(shown.context_length)}</td>${isText ? html`<td class="fb-end">${withCommas(shown.max_output_tokens ?? 0)}</td>` : undefined}<td class="fb-end">${versionOf(model, shown)}</td><td class="fb-soft">${protocolsOf(shown.protocols)}</td></tr>`
  }
  return html`<table class="fb-table prices"><thead><tr><th scope="col">Model</th>${head.map((title) => html`<th scope="col" class="fb-end">${title}</th>`)}<th scope="col" class="fb-end">Context</th>${isText ? html`<th scope="col" class="fb-end">Output limit</th>` : undefined}<th scope="col" class="fb-end">Version</th><th scope="col">Protocols</th></tr></thead><tbody>${found.map(row)}</tbody></table>`
}

/** A line for each size or resolution; for a model that sells pictures by the token, for each class. */
function byPiece(kind: Kind, found: readonly Listed[]): Html {
  const unit = kind === 'videos' ? 'second' : 'picture'
  const rowsOf = ({ model, shown: show }: Listed) => {
    const shown = show()
    const { per_image, per_second, per_million_tokens } = shown.pricing ?? {}
    const pieces = Object.entries(per_image ?? per_second ?? {}).map(
      ([name, price]) => [`${unit}, ${name.replace('/', ', ')}`, price] as const,
    )
    const tokens = Object.entries(per_million_tokens ?? {}).map(
      ([name, price]) => [`million tokens, ${name.replaceAll('_', ' ')}`, price] as const,
    )
    const lines = [...pieces, ...tokens]
    return html`${lines.map(([name, price], at) => html`<tr>${at === 0 ? html`<th scope="rowgroup" rowspan="${lines.length}">${nameOf(model)}<span class="fb-sub">version ${versionOf(model, shown)}</span></th>` : undefined}<td class="fb-soft">${name}</td><td class="fb-end">${usd(price)}</td></tr>`)}`
  }
  return html`<table class="fb-table prices"><thead><tr><th scope="col">Model</th><th scope="col">Sold by</th><th scope="col" class="fb-end">USD</th></tr></thead><tbody>${found.map(rowsOf)}</tbody></table>`
}

function nameOf({ id, displayName }: Model): Html {
  return html`<a href="/models/${id}">${id}</a>${displayName === id ? undefined : html`<span class="fb-sub">${displayName}</span>`}`
}

function versionOf({ id }: Model, { pricing }: Shown): Html {
  return html`<a href="/models/${id}#history" aria-label="Price history of ${id}, version ${pricing?.version}">${pricing?.version}</a>`
}

const PROTOCOL_WORDS: Readonly<Record<string, string>> = {
  openai: 'OpenAI',
  openai_responses: 'Responses',
  anthropic: 'Anthropic',
  gemini: 'Gemini',
  openai_embeddings: 'OpenAI',
  gemini_embeddings: 'Gemini',
  openai_images: 'OpenAI',
  video: 'Tasks',
}

export function protocolsOf(names: readonly string[]): string {
  return [...new Set(names.map((name) => PROTOCOL_WORDS[name] ?? name))].join(', ')
}
