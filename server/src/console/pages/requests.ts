import { type Html, html } from '../../kernel/html.ts'
import { usd } from '../../kernel/money.ts'
import type { Trouble } from '../../pages/form.ts'
import { icon } from '../../pages/icons.ts'
import {
  type Filters,
  fromFirst,
  hrefWith,
  isHeld,
  KINDS,
  type Kind,
  type ListedCall,
  type Row,
  rowOf,
  sumOf,
} from '../listed-calls.ts'
import { exact, troubled } from './parts.ts'
import type { RequestPage } from './request-forms.ts'
import { badgeOf } from './request-parts.ts'

type Shown = {
  readonly page: RequestPage
  readonly filters: Filters
  /** What was searched for by its id. */
  readonly sought: string
  readonly nowMs: number
  /** Where requests are, and where the account API tells them. */
  readonly path: string
  readonly api: string
  readonly mode: string
  readonly operations: readonly string[]
  /** Keys and grants that may be chosen, by id. */
  readonly makers: readonly (readonly [id: string, name: string])[]
  readonly trouble: Trouble | null
}

const OUTCOMES = [
  ['', 'All'],
  ['posted', 'Charged'],
  ['open', 'Held'],
  ['voided', 'Not charged'],
] as const

export function requestsView(shown: Shown): Html {
  const { path, api, mode, filters, trouble } = shown
  return html`<div class="fb-title"><div><h1>Requests</h1><p>Every call that was begun, the latest first. Kept for 30 days.</p></div><div class="fb-actions"><span class="live" data-live hidden role="status"></span><button class="fb-button fb-button--quiet" type="button" data-pause hidden>${icon('pause')}<span>Pause</span></button></div></div>
<div class="contents" data-island="requests" data-api="${api}" data-path="${path}" data-mode="${mode}">
${filterForm(shown)}
<nav class="segments" aria-label="State">${OUTCOMES.map(([outcome, word]) => html`<a href="${hrefWith(path, { ...fromFirst(filters), outcome })}" data-outcome="${outcome}"${outcome === (filters.outcome ?? '') ? html` aria-current="true"` : undefined}>${word}</a>`)}</nav>
<div class="trouble" data-trouble>${troubled(trouble)}</div>
${table(shown)}
<template data-rows><table><tbody>${KINDS.map((kind) => row(blank(kind), path))}</tbody></table></template>
</div>`
}

function table({ page, path, filters, nowMs }: Shown): Html {
  const calls: readonly ListedCall[] = [...page.open, ...page.data]
  const rows = calls.map((call) => rowOf(call, nowMs))
  const sum = (held: boolean) =>
    exact(usd(sumOf(rows.filter(({ kind }) => isHeld(kind) === held).map((one) => one.usd))))
  const isEmpty = calls.length === 0
  return html`<section class="fb-card grid" aria-label="Requests"${isEmpty ? html` hidden` : undefined} data-grid>
<div class="grid__scroll fb-scroll" tabindex="0" role="region" aria-label="The list of requests"><table class="fb-table fb-table--card fb-table--dense requests"><thead><tr><th scope="col">Time, UTC</th><th scope="col">Operation</th><th scope="col">Key or agent</th><th scope="col">State</th><th scope="col" class="fb-end">Took</th><th scope="col" class="fb-end">USD</th></tr></thead><tbody data-list>${rows.map((one) => row(one, path))}</tbody></table></div>
<div class="grid__foot"><span data-count>${countWords(calls.length)}</span><span>Shown: charged <b data-charged>${sum(false)}</b>, held <b data-held>${sum(true)}</b></span></div>
</section>
<div class="fb-empty"${isEmpty ? undefined : html` hidden`} data-empty>${emptyWords(page, filters, path)}</div>
<p class="fb-actions"><a class="fb-button fb-button--quiet" href="${page.next_cursor === null ? path : hrefWith(path, { ...filters, cursor: page.next_cursor })}" data-older${page.next_cursor === null ? html` hidden` : undefined}>Older requests</a><a class="fb-button fb-button--plain" href="${hrefWith(path, fromFirst(filters))}" data-latest${filters.cursor === undefined ? html` hidden` : undefined}>Back to the latest</a></p>`
}

const countWords = (count: number) => `${count} ${count === 1 ? 'request' : 'requests'}, the latest first`

function emptyWords({ next_cursor: next }: RequestPage, filters: Filters, path: string): Html {
  if (next !== null) return html`<p>None of the latest 20,000 requests is like that. Older ones may be.</p>`
  if (Object.keys(filters).length > 0) return html`<p>No request is like that.</p>`
  return html`<p>Requests stand here as they end, with what each cost.</p><p><a class="fb-button" href="${path.replace(/\/requests$/, '')}">${icon('play')}Make a call</a></p>`
}

/** One line. The script fills copies of it by the same classes. */
export function row(said: Row, path: string): Html {
  const { kind, id, operation, model, maker, usd: cost } = said
  return html`<tr data-id="${id}" data-kind="${kind}"><td class="at fb-num"><time datetime="${said.at}">${said.day}${said.clock}<span class="fb-dim">${said.fraction}</span></time></td><th scope="row" class="op"><a href="${path}/${id}" title="${operation}">${operation}</a><span class="fb-sub" title="${model}">${model}</span></th><td class="key"><span title="${maker}"><bdi>${maker}</bdi></span></td><td class="st">${badgeOf(said)}<span class="note">${said.note}</span></td><td class="ms fb-end fb-soft">${kind === 'running' ? html`${icon('running')} runs` : said.took}</td><td class="fb-end cost">${cost === '' ? html`<span class="fb-dim">–</span>` : exact(usd(cost))}</td></tr>`
}

function blank(kind: Kind): Row {
  const texts = {
    id: '',
    at: '',
    day: '',
    clock: '',
    fraction: '',
    operation: '',
    model: '',
    maker: '',
    status: '',
    note: '',
  }
  return { ...texts, kind, took: '', usd: kind === 'voided' || kind === 'refused' ? '' : '0.000000000' }
}

const WITHIN = [
  ['', 'Last 30 days'],
  ['hour', 'Last hour'],
  ['day', 'Last 24 hours'],
  ['week', 'Last 7 days'],
] as const

function filterForm({ path, filters, sought, operations, makers }: Shown): Html {
  const more = MORE.filter(({ name }) => filters[name] !== undefined)
  return html`<form class="filters filters--grid" role="search" aria-label="Find requests" action="${path}" method="get" data-filters>
<input type="hidden" name="outcome" value="${filters.outcome}">
<div class="fb-affix"><span>${icon('search')}</span><input class="fb-input fb-input--small" name="id" type="search" value="${sought}" placeholder="Request id" aria-label="Request id" autocomplete="off" spellcheck="false"></div>
${choice('operation', 'Operation', [['', 'All operations'], ...operations.map((id) => [id, id] as const)], filters.operation)}
${choice('key', 'Key or agent', [['', 'All keys and agents'], ...makers], filters.key)}
${choice('within', 'Time', WITHIN, filters.within)}
<div class="fb-affix least"><span>cost from $</span><input class="fb-input fb-input--small" name="min_cost_usd" inputmode="decimal" value="${filters.min_cost_usd}" placeholder="0" aria-label="Cost from, in USD" autocomplete="off"></div>
<button class="fb-button fb-button--quiet" type="submit">Filter</button>
<details class="fb-more more"${more.length > 0 ? html` open` : undefined}><summary>More filters</summary><div class="more__fields">${MORE.map((one) => detail(one, filters))}<p class="fb-actions"><a href="${path}" data-clear>Clear all filters</a></p></div></details>
</form>`
}

function choice(
  name: string,
  label: string,
  options: readonly (readonly [value: string, word: string])[],
  chosen = '',
): Html {
  return html`<select class="fb-select fb-select--small" name="${name}" aria-label="${label}">${options.map(([value, word]) => html`<option value="${value}"${value === chosen ? html` selected` : undefined}>${word}</option>`)}</select>`
}

const MORE = [
  { name: 'model', label: 'Model', hint: 'As it was asked for', type: 'text' },
  { name: 'tag', label: 'Tag', hint: 'name=value', type: 'text' },
  { name: 'end_user', label: 'End user', hint: 'By its id, as a request has it', type: 'text' },
  { name: 'max_cost_usd', label: 'Cost at most, in USD', hint: '', type: 'text' },
  { name: 'start', label: 'From, UTC', hint: '', type: 'datetime-local' },
  { name: 'end', label: 'Until, UTC', hint: '', type: 'datetime-local' },
] as const

function detail({ name, label, hint, type }: (typeof MORE)[number], filters: Filters): Html {
  return html`<div class="fb-field"><label for="f-${name}">${label}</label><input class="fb-input fb-input--small" id="f-${name}" name="${name}" type="${type}" value="${filters[name]}" placeholder="${hint}" autocomplete="off"></div>
`
}
