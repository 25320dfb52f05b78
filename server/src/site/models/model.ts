import type { Clock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/fault.ts'
import { type Html, html } from '../../kernel/html.ts'
import { formatUsd } from '../../kernel/money.ts'
import { icon } from '../../pages/icons.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { Model } from '../../pricing/models.ts'
import { shownModel } from '../../pricing/shown-model.ts'
import type { TokenCounter } from '../../upstreams/tokens/count-tokens.ts'
import { codeBlock } from '../code.ts'
import { queryText } from '../filter.ts'
import type { KeptPrices } from '../kept-prices.ts'
import { asPrice, shownUsd, withCommas } from '../money.ts'
import type { Shell } from '../shell.ts'
import { staleNote } from '../stale-note.ts'
import { testModeNote } from '../test-mode-note.ts'
import {
  type Asked,
  type Calculated,
  calculate,
  type Fields,
  type Kind,
  requestFor,
  type Sold,
  soldAs,
} from './calculator.ts'
import { priceHistory } from './history.ts'
import { protocolsOf } from './list.ts'

type Parts = {
  readonly shell: Shell
  readonly prices: KeptPrices
  readonly clock: Pick<Clock, 'nowMs'>
  readonly counter: Pick<TokenCounter, 'count'>
  /** By which a caller asks for the same as a quote. */
  readonly costModeHeader: string
}

/** Of what is calculated: an address can't be longer, and nobody prices a book here. */
const TEXT_MOST = 2_000
const FIELD_MOST = 40

/** One model: what it costs by class, what it cost, and what a call of it would cost. */
export function modelPage(parts: Parts): PageRoute {
  const { shell, prices, clock, counter, costModeHeader } = parts
  return {
    method: 'GET',
    // Names have slashes.
    path: '/models/*',
    answer({ params, query }) {
      const book = prices.now()
      const id = params['*'] ?? ''
      const model = book.models.find((one) => one.id === id)
      const sold = model && soldAs(model)
      if (model === undefined || sold === undefined) throw new Fault('route_not_found')
      const field = (name: string, most = FIELD_MOST) => queryText(query, name, most)
      const fields: Fields = {
        text: field('text', TEXT_MOST),
        most: field('most'),
        size: field('size'),
        count: field('count'),
      }
      const result = query.has('text') ? attempt(model, sold, fields, counter) : undefined
      return shell.page({
        title: `${model.id} · Models`,
        description: `What ${model.id} costs, what it cost before, and what a call of it would cost.`,
        path: `/models/${model.id}`,
        section: 'models',
        main: html`<div class="fb-wrap models">
<div class="lead"><nav class="fb-crumbs" aria-label="Where you are"><a href="/models">Models</a>${icon('right')}<span aria-current="page">${model.id}</span></nav>
<h1><code>${model.id}</code></h1><p>${model.displayName === model.id ? '' : `${model.displayName}. `}${factsOf(model)} Its prices are published estimates in USD; a quote tells what you pay.</p></div>
${staleNote(prices)}${testModeNote(prices.now())}
<div class="one-model"><div>${priceTable(model)}${priceHistory(book.histories.get(model.id) ?? [], clock.nowMs())}
<p class="more"><a href="/catalogue/${sold.operationId}?model=${encodeURIComponent(model.id)}">Code to call it</a></p></div>
<section aria-labelledby="calculator"><h2 id="calculator">What a call costs</h2>${form(model, sold, fields)}${result && shownResult(result, costModeHeader)}</section></div>
</div>`,
      })
    },
  }
}

type Result = { readonly asked: Asked; readonly calculated: Calculated } | { readonly refused: string }

function attempt(model: Model, sold: Sold, fields: Fields, counter: Parts['counter']): Result {
  try {
    const asked = requestFor(model, sold, fields)
    return { asked, calculated: calculate(model, asked, { counter, tokenizer: model.tokenizer }) }
  } catch (error) {
    // What a call would be refused with is what somebody has to know here too.
    if (error instanceof Fault && error.status < 500) return { refused: error.message }
    throw error
  }
}

function factsOf(model: Model): string {
  const { context_length, max_output_tokens, default_output_tokens, protocols } = shownModel(model)
  const output =
    max_output_tokens === undefined
      ? ''
      : ` Output ${withCommas(default_output_tokens ?? 0)} tokens unless you name a limit, at most ${withCommas(max_output_tokens)}.`
  return `Protocols: ${protocolsOf(protocols)}. Context ${withCommas(context_length)} tokens.${output}`
}

function priceTable(model: Model): Html {
  const { pricing } = shownModel(model)
  const groups: readonly (readonly [string, Readonly<Record<string, string>> | undefined])[] = [
    ['a million tokens', pricing?.per_million_tokens],
    ['a picture', pricing?.per_image],
    ['a second of video', pricing?.per_second],
    ['a call', pricing?.per_call],
  ]
  const rows = groups.flatMap(([unit, prices]) =>
    Object.entries(prices ?? {}).map(
      ([name, price]) =>
        html`<tr><th scope="row">${name.replaceAll('_', ' ').replace('/', ', ')}</th><td class="fb-soft">${unit}</td><td class="fb-end">${shownUsd(asPrice(price))}</td></tr>`,
    ),
  )
  const above = pricing?.steps_above_tokens ?? []
  const also = [
    ...(above.length > 0 ? [`Input above ${above.map(withCommas).join(' or ')} tokens has prices of its own.`] : []),
    ...(pricing?.tiers === undefined ? [] : [`Service tiers with prices of their own: ${pricing.tiers.join(', ')}.`]),
  ]
  return html`<section aria-labelledby="prices"><h2 id="prices">Prices <small>version ${pricing?.version}</small></h2><table class="fb-table prices"><thead><tr><th scope="col">What</th><th scope="col">per</th><th scope="col" class="fb-end">USD</th></tr></thead><tbody>${rows}</tbody></table>${also.length === 0 ? undefined : html`<p class="source"><span>${also.join(' ')} A quote has every price.</span></p>`}</section>`
}

const TEXT_WORDS: Readonly<Record<Kind, string>> = {
  conversation: 'Prompt',
  vectors: 'The text',
  pictures: 'Prompt',
  videos: 'Prompt',
}

/** A form that is a link: what it says can be passed on. */
function form(model: Model, { kind }: Sold, { text, most, size, count }: Fields): Html {
  const { pricing, max_output_tokens } = shownModel(model)
  const sizes = Object.keys(pricing?.per_image ?? pricing?.per_second ?? {})
  const limit =
    kind === 'conversation'
      ? numberField(
          'most',
          'Output limit',
          most,
          `Tokens, at most ${withCommas(max_output_tokens ?? 0)}. Default: the limit of the model.`,
        )
      : kind === 'videos'
        ? numberField('most', 'Length', most, `Seconds, at most ${model.limits.outputMost}.`)
        : undefined
  return html`<form class="calculator" action="/models/${model.id}#calculator">
<div class="fb-field"><label for="text">${TEXT_WORDS[kind]}</label><textarea class="fb-input" id="text" name="text" rows="4" maxlength="${TEXT_MOST}" required>${text === '' ? undefined : text}</textarea></div>
${limit}
${sizes.length === 0 ? undefined : html`<div class="fb-field"><label for="size">${kind === 'videos' ? 'Resolution' : 'Size and quality'}</label><select class="fb-input" id="size" name="size">${sizes.map((one) => html`<option value="${one}"${one === size ? html` selected` : undefined}>${one.replace('/', ', ')}</option>`)}</select></div>`}
${kind === 'pictures' ? numberField('count', 'How many', count, 'Default: 1.') : undefined}
<button class="fb-button" type="submit">Calculate</button></form>`
}

function numberField(name: string, label: string, value: string, hint: string): Html {
  return html`<div class="fb-field"><label for="${name}">${label}</label><input class="fb-input" id="${name}" name="${name}" inputmode="numeric" maxlength="10" value="${value}" aria-describedby="${name}-h"><p class="fb-hint" id="${name}-h">${hint}</p></div>`
}

/** Those whose input is held for by its bytes. */
const IN_BYTES: ReadonlySet<string> = new Set(['openai', 'openai_responses', 'anthropic', 'gemini'])

function shownResult(result: Result, costModeHeader: string): Html {
  if ('refused' in result)
    return html`<div class="fb-callout fb-callout--bad" role="status">${icon('refused')}<p><b>Such a call would be refused.</b> ${result.refused}</p></div>`
  const { calculated, asked } = result
  const { expected, most, assumption, version } = calculated
  return html`<div class="fb-ticket quote" role="group" aria-labelledby="q"><div><h3 id="q">What a quote would say</h3><dl class="fb-rows"><div><dt>Expected</dt><dd>${shownUsd(formatUsd(expected))}</dd></div><div class="sum"><dt>At most</dt><dd>${shownUsd(formatUsd(most))}</dd></div></dl></div>
<div><p>${assumption} Held is what stands under <b>At most</b>; charged is what it used, at price version ${version}.${IN_BYTES.has(asked.protocol) ? html` The input is held for as a token for each byte, and up to 300 for what providers put around a prompt: <a href="/docs/models#bounds-and-estimates">why</a>.` : undefined}</p></div></div>
${codeBlock({ title: `The request: ${asked.operationId}`, code: JSON.stringify(asked.body, null, 2), isWrapped: true })}<p class="fb-soft">Send it with <code>${costModeHeader}: quote</code>, and the gateway says the same, at the prices of your account.</p>`
}
