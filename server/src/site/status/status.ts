import type { Names } from '../../catalogue/operation.ts'
import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { isReady, isStarting, type ProcessView } from '../../processes/processes.ts'
import { type UpstreamView, upstreamsOf } from '../../processes/upstreams.ts'
import { asAsked } from '../as-asked.ts'
import { dayOf, minuteOf } from '../dates.ts'
import type { Shell } from '../shell.ts'
import type { Reading } from './kept-processes.ts'

type Parts = { readonly shell: Shell; readonly processes: () => Reading; readonly names: Names }

type State = 'answers' | 'trouble' | 'unknown'
type Row = { readonly name: string; readonly note: string; readonly state: State; readonly word: string }

/** How the installation is now, as all of its processes say of themselves. */
export function statusRoutes({ shell, processes, names }: Parts): readonly PageRoute[] {
  return [
    {
      method: 'GET',
      path: '/status',
      answer() {
        const reading = processes()
        return asAsked(
          shell.page({
            title: 'Status',
            description: 'What answers now, as all processes say of themselves.',
            path: '/status',
            section: 'status',
            head: html`<meta name="robots" content="noindex">\n`,
            main: pageOf(rowsOf(reading, names), reading),
          }),
        )
      },
    },
  ]
}

function rowsOf({ processes, isFresh }: Reading, names: Names): readonly Row[] {
  const live = processes.filter(({ isAlive }) => isAlive)
  const website: Row = {
    name: 'Website',
    note: 'Catalogue, prices, guides: from memory',
    state: 'answers',
    word: 'Answers',
  }
  const ledger: Row = { name: 'Ledger', note: 'Holds and charges', state: 'answers', word: 'Answers' }
  const parts = [
    partOf(live, 'gateway', { name: 'Gateway', note: 'Calls with a key: /v1, /v1beta, /apis', isNeeded: true }),
    partOf(live, 'agent', { name: 'Agents’ tools', note: 'Five tools over MCP', isNeeded: false }),
    partOf(live, 'worker', { name: 'Worker', note: 'Tasks, mail, sums of usage', isNeeded: true }),
    contractRow(live),
    ...providerRows(upstreamsOf(processes), names),
  ]
  if (isFresh) return [ledger, website, ...parts]
  const unknown = parts.map((row): Row => ({ ...row, state: 'unknown', word: 'Not known' }))
  return [{ ...ledger, state: 'trouble', word: 'No answer' }, website, ...unknown]
}

type Part = { readonly name: string; readonly note: string; readonly isNeeded: boolean }

function partOf(live: readonly ProcessView[], role: string, { name, note, isNeeded }: Part): Row {
  const all = live.filter((one) => one.report?.roles.includes(role) === true && !isStarting(one))
  const ready = all.filter(isReady)
  const counted = `${note}. ${all.length === 1 ? 'One process' : `${all.length} processes`}`
  if (ready.length > 0) {
    const word = ready.length === all.length ? 'Answers' : `${ready.length} of ${all.length} answer`
    return { name, note: counted, state: ready.length === all.length ? 'answers' : 'trouble', word }
  }
  if (all.length > 0) return { name, note: counted, state: 'trouble', word: 'Not ready' }
  return { name, note, state: isNeeded ? 'trouble' : 'unknown', word: isNeeded ? 'Not seen' : 'Not running' }
}

function contractRow(live: readonly ProcessView[]): Row {
  const serving = live.flatMap(({ report }) => (report?.roles.includes('gateway') === true ? [report.contract] : []))
  const row = { name: 'Contract', note: 'OpenAPI by its hash' } as const
  if (serving.length === 0) return { ...row, state: 'unknown', word: 'Not known' }
  return serving.includes(null)
    ? { ...row, state: 'trouble', word: 'Not verified' }
    : { ...row, state: 'answers', word: 'Verified' }
}

/** A provider may have several upstreams: it is asked as long as one of them is. */
function providerRows(upstreams: readonly UpstreamView[], names: Names): readonly Row[] {
  if (upstreams.length === 0)
    return [{ name: 'Providers', note: 'None was called yet', state: 'unknown', word: 'Not known' }]
  const byName = Map.groupBy(upstreams, ({ name }) => wordFor(name, names))
  return [...byName].sort().map(([name, all]): Row => {
    const down = all.filter(({ state }) => state !== 'up')
    if (down.length === 0) return { name, note: 'Provider', state: 'answers', word: 'Answers' }
    const since = down.map((one) => one.since?.getTime() ?? Number.POSITIVE_INFINITY)
    const from = Math.min(...since)
    const isOut = all.every(({ state }) => state === 'down')
    const note = `Provider. It kept failing${Number.isFinite(from) ? ` since ${minuteOf(new Date(from))}` : ''}: it is tried again every few seconds`
    return { name, note, state: 'trouble', word: isOut ? 'Not asked' : 'Asked in part' }
  })
}

/** A slot in the operator's own words. */
function wordFor(slot: string, names: Names): string {
  return slot.replace(/^(social_[a-z])/, (word) => Object.entries(names).find(([name]) => name === word)?.[1] ?? word)
}

const BADGES: Readonly<Record<State, (word: string) => Html>> = {
  answers: (word) => html`<span class="fb-badge fb-badge--ok">${icon('check')}${word}</span>`,
  trouble: (word) => html`<span class="fb-badge fb-badge--bad">${icon('refused')}${word}</span>`,
  unknown: (word) => html`<span class="fb-badge">${icon('square')}${word}</span>`,
}

function pageOf(rows: readonly Row[], { processes, readAt }: Reading): Html {
  const { title, say } = headlineOf(rows)
  const live = processes.filter(({ isAlive }) => isAlive)
  return html`<div class="fb-wrap"><div class="lead"><h1>${title}</h1><p>${say}</p>
<p class="fb-soft read">${icon('clock')}${readAt === null ? 'Not read yet.' : html`Read at ${readAt.toISOString().slice(11, 19)} UTC on ${dayOf(readAt)}, as ${live.length === 1 ? 'the one process that runs says of itself' : `all ${live.length} processes that run say of themselves`}.`} Load the page again to read it again.</p></div>
<section aria-labelledby="parts"><h2 id="parts" class="fb-hide">Parts</h2><table class="fb-table fb-table--plain state-table"><thead><tr><th scope="col">Part</th><th scope="col" class="fb-end">Now</th></tr></thead><tbody>${rows.map(({ name, note, state, word }) => html`<tr><th scope="row">${name}<span class="fb-sub">${note}</span></th><td class="state">${BADGES[state](word)}</td></tr>\n`)}</tbody></table></section>
<section class="past" aria-labelledby="past"><h2 id="past">Without a break</h2><p class="fb-soft">${sinceOf(live)}</p></section></div>`
}

/** Every process renews its lease in the ledger every few seconds, and begins to count anew when it was late. */
function sinceOf(live: readonly ProcessView[]): string {
  const newest = live.reduce((latest, { heldSince }) => Math.max(latest, heldSince.getTime()), 0)
  return newest === 0
    ? 'No process has reached the ledger.'
    : `Every process has reached the ledger all the time since ${minuteOf(new Date(newest))}, when the last of them started or came back.`
}

function headlineOf(rows: readonly Row[]): { readonly title: string; readonly say: string } {
  const known = rows.filter(({ state }) => state !== 'unknown')
  const troubled = known.filter(({ state }) => state === 'trouble')
  if (troubled.length === 0)
    return { title: `All ${known.length} parts answer`, say: 'Calls are accepted, held for and settled.' }
  if (troubled.some(({ name }) => name === 'Ledger'))
    return {
      title: 'The ledger does not answer',
      say: 'Without it, calls that cost money get 503 billing_dependency_timeout before any upstream is asked, and cost nothing. Catalogue, prices and guides stay available from memory.',
    }
  return {
    title: `${known.length - troubled.length} of ${known.length} parts answer`,
    say: `In trouble: ${troubled.map(({ name }) => name.toLowerCase()).join(', ')}. The other parts answer.`,
  }
}
