import { OBSERVATION_TOO_OLD, type SalesNow } from '../../http/routes/sales.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { asAsked } from '../as-asked.ts'
import { dayOf, minuteOf } from '../dates.ts'
import type { Shell } from '../shell.ts'
import type { Trouble, Watch } from './watch.ts'

/** What the health checks of this process know, from memory alone: nothing here waits for PostgreSQL. */
export type Health = {
  /** What a load balancer is told to be missing; nothing where requests can be served. */
  readonly readiness: () => readonly string[]
  readonly roles: readonly string[]
  readonly hasContract: boolean
  /** By which a worker is known to live: it makes a snapshot of what is sold again and again. */
  readonly sales: () => SalesNow
  /** Providers that this process has asked, by name, and whether it asks them at the moment. */
  readonly upstreams: () => readonly Provider[]
  readonly watch: Pick<Watch, 'sinceMs' | 'troubles' | 'look'>
}

type Parts = { readonly shell: Shell; readonly clock: Pick<Clock, 'nowMs'>; readonly health: Health }

type Provider = { readonly name: string; readonly isAsked: boolean }
type State = 'answers' | 'trouble' | 'unknown'
type Row = { readonly name: string; readonly note: string; readonly state: State; readonly word: string }

/** How it is now, as the process that serves the page sees it. */
export function statusRoutes({ shell, clock, health }: Parts): readonly PageRoute[] {
  return [
    {
      method: 'GET',
      path: '/status',
      answer() {
        health.watch.look()
        const rows = rowsOf(health)
        return asAsked(
          shell.page({
            title: 'Status',
            description: 'What answers now, from the same checks that load balancers use.',
            path: '/status',
            section: 'status',
            head: html`<meta name="robots" content="noindex">\n`,
            main: pageOf(rows, health, new Date(clock.nowMs())),
          }),
        )
      },
    },
  ]
}

function rowsOf({ readiness, roles, hasContract, sales, upstreams }: Health): readonly Row[] {
  const isLedgerThere = readiness().length === 0
  const row = (role: string, name: string, note: string): Row => {
    if (!roles.includes(role)) return { name, note, state: 'unknown', word: 'Another process' }
    return isLedgerThere
      ? { name, note, state: 'answers', word: 'Answers' }
      : { name, note, state: 'trouble', word: 'Not ready' }
  }
  return [
    row('gateway', 'Gateway', 'Calls with a key: /v1, /v1beta, /apis'),
    row('agent', 'Agents’ tools', 'Five tools over MCP'),
    isLedgerThere
      ? { name: 'Ledger', note: 'Holds and charges', state: 'answers', word: 'Answers' }
      : { name: 'Ledger', note: 'Holds and charges', state: 'trouble', word: 'No answer' },
    workerRow(sales()),
    { name: 'Website', note: 'Catalogue, prices, guides: from memory', state: 'answers', word: 'Answers' },
    hasContract
      ? { name: 'Contract', note: 'OpenAPI by its hash', state: 'answers', word: 'Verified' }
      : { name: 'Contract', note: 'OpenAPI by its hash', state: 'trouble', word: 'Not verified' },
    ...providerRows(upstreams()),
  ]
}

function workerRow(sales: SalesNow): Row {
  const row = { name: 'Worker', note: 'Tasks, orphans, mail, the snapshot of what is sold' } as const
  if (sales.freshness === 'fresh') return { ...row, state: 'answers', word: 'At work' }
  if (sales.freshness === 'unavailable') return { ...row, state: 'unknown', word: 'Not seen yet' }
  const note = `Last seen ${minuteOf(sales.snapshot.observedAt)}`
  // Any other reason is one of the data, of PostgreSQL or of this process: it tells nothing of whether a worker lives.
  return sales.reason === OBSERVATION_TOO_OLD
    ? { ...row, note, state: 'trouble', word: 'Not seen' }
    : { ...row, note, state: 'unknown', word: 'Not known' }
}

function providerRows(providers: readonly Provider[]): readonly Row[] {
  if (providers.length === 0)
    return [{ name: 'Providers', note: 'This process has called none yet', state: 'unknown', word: 'Not known' }]
  return providers.map(({ name, isAsked }) =>
    isAsked
      ? { name, note: 'Provider', state: 'answers', word: 'Answers' }
      : {
          name,
          note: 'Provider. It kept failing: it is tried again every few seconds',
          state: 'trouble',
          word: 'Not asked',
        },
  )
}

const BADGES: Readonly<Record<State, (word: string) => Html>> = {
  answers: (word) => html`<span class="fb-badge fb-badge--ok">${icon('check')}${word}</span>`,
  trouble: (word) => html`<span class="fb-badge fb-badge--bad">${icon('refused')}${word}</span>`,
  unknown: (word) => html`<span class="fb-badge">${icon('square')}${word}</span>`,
}

function pageOf(rows: readonly Row[], health: Health, now: Date): Html {
  const { title, say } = headlineOf(rows, health.roles.includes('gateway'))
  const since = new Date(health.watch.sinceMs)
  return html`<div class="fb-wrap"><div class="lead"><h1>${title}</h1><p>${say}</p>
<p class="fb-soft read">${icon('clock')}Read at ${now.toISOString().slice(11, 19)} UTC on ${dayOf(now)} by one process, from what its health checks know. Load the page again to read it again.</p></div>
<section aria-labelledby="parts"><h2 id="parts" class="fb-hide">Parts</h2><table class="fb-table fb-table--plain state-table"><thead><tr><th scope="col">Part</th><th scope="col" class="fb-end">Now</th></tr></thead><tbody>${rows.map(({ name, note, state, word }) => html`<tr><th scope="row">${name}<span class="fb-sub">${note}</span></th><td class="state">${BADGES[state](word)}</td></tr>\n`)}</tbody></table></section>
<section class="past" aria-labelledby="past"><h2 id="past">Since ${minuteOf(since)}</h2><p class="fb-soft">The start of this process. What happened before, and what other processes saw, is not known here.</p>${troublesOf(health.watch.troubles())}</section></div>`
}

/** Of calls it tells only where they are taken by this process: a website alone does not see them. */
function headlineOf(rows: readonly Row[], takesCalls: boolean): { readonly title: string; readonly say: string } {
  const known = rows.filter(({ state }) => state !== 'unknown')
  const troubled = known.filter(({ state }) => state === 'trouble')
  if (troubled.length === 0)
    return {
      title: `All ${known.length} parts that are seen from here answer`,
      say: takesCalls
        ? 'Calls are accepted, held for and settled.'
        : 'The ledger answers this process, which takes no calls.',
    }
  const title = `${known.length - troubled.length} of ${known.length} parts answer`
  if (troubled.some(({ name }) => name === 'Ledger'))
    return {
      title,
      say: `The ledger does not answer this process. ${takesCalls ? 'Without it, calls that cost money get 503 billing_dependency_timeout before any upstream is asked, and cost nothing.' : 'Whether it answers those that take calls is not known here.'} Catalogue, prices and guides stay available from memory.`,
    }
  return {
    title,
    say: `In trouble: ${troubled.map(({ name }) => name.toLowerCase()).join(', ')}. The other parts that are seen from here answer.`,
  }
}

function troublesOf(troubles: readonly Trouble[]): Html {
  if (troubles.length === 0) return html`<p>The ledger has answered all the time.</p>`
  const rows = troubles.map(({ fromMs, untilMs }) => {
    const from = new Date(fromMs)
    const seconds = untilMs === null ? null : Math.max(1, Math.round((untilMs - fromMs) / 1_000))
    return html`<article><h3>The ledger did not answer</h3><p class="fb-dim">${minuteOf(from)}, ${seconds === null ? 'until now' : `for ${seconds.toLocaleString('en')} s`}</p><p>As this process saw it. A paid call that the ledger does not answer is refused with 503 and costs nothing.</p></article>`
  })
  return html`${rows}`
}
