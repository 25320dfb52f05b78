import {
  type EndedCall,
  type Filters,
  filtersIn,
  fromFirst,
  hrefWith,
  isAmong,
  isHeld,
  type ListedCall,
  queryOf,
  rowOf,
  sumOf,
} from '../listed-calls.ts'
import { amountOf, element } from './amount.ts'
import { watchCalls } from './live.ts'

/** As many new calls are added to a page; whoever wants more loads it again. */
const ADDED_MOST = 200

/** The list of requests: filtered without a reload, and with new calls as they end. */
export function liveRequests(place: HTMLElement): void {
  const { api = '', path = '', mode = '' } = place.dataset
  const part = <T extends HTMLElement = HTMLElement>(name: string): T => {
    const found = document.querySelector<T>(`[data-${name}]`)
    if (found === null) throw new Error(`the page has no ${name}`)
    return found
  }
  const form = part<HTMLFormElement>('filters')
  const list = part('list')
  const makeRow = rowMaker(part<HTMLTemplateElement>('rows'), path)
  const tabs = [...place.querySelectorAll<HTMLAnchorElement>('a[data-outcome]')]
  const [older, latest] = [part<HTMLAnchorElement>('older'), part<HTMLAnchorElement>('latest')]
  let filters = filtersIn(new URLSearchParams(location.search))
  let asking: AbortController | undefined

  /** What stands below the rows, and whether there are any. */
  function addUp(emptyText?: string): void {
    const rows = [...list.querySelectorAll<HTMLElement>('tr')]
    const sum = (held: boolean) =>
      amountOf(sumOf(rows.filter(({ dataset }) => isHeld(dataset.kind) === held).map(amountIn)))
    part('count').textContent = `${rows.length} ${rows.length === 1 ? 'request' : 'requests'}, the latest first`
    part('charged').replaceChildren(sum(false))
    part('held').replaceChildren(sum(true))
    part('grid').hidden = rows.length === 0
    const empty = part('empty')
    empty.hidden = rows.length > 0
    if (emptyText !== undefined) empty.replaceChildren(element('p', '', emptyText))
  }

  /** At once, so that the next change of a field is one of what is looked for now. */
  function fillForm(wanted: Filters): void {
    for (const field of form.elements)
      if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement)
        field.value = wanted[field.name as keyof Filters] ?? ''
  }

  /** Links that say what is looked for. */
  function tellFilters(next: string | null): void {
    for (const tab of tabs) {
      const { outcome = '' } = tab.dataset
      tab.href = hrefWith(path, { ...fromFirst(filters), outcome })
      if (outcome === (filters.outcome ?? '')) tab.setAttribute('aria-current', 'true')
      else tab.removeAttribute('aria-current')
    }
    older.hidden = next === null
    older.href = hrefWith(path, { ...filters, cursor: next ?? '' })
    latest.hidden = filters.cursor === undefined
    latest.href = hrefWith(path, fromFirst(filters))
  }

  async function load(wanted: Filters, isNew = true): Promise<void> {
    asking?.abort()
    asking = new AbortController()
    const { signal } = asking
    place.setAttribute('aria-busy', 'true')
    fillForm(wanted)
    try {
      const query = new URLSearchParams({ ...queryOf(wanted, Date.now()), mode })
      const answer = await fetch(`${api}?${query}`, { headers: { accept: 'application/json' }, signal })
      const body = await answer.json()
      part('trouble').replaceChildren(...(answer.ok ? [] : [problem(String(body.detail))]))
      if (!answer.ok) return
      filters = wanted
      const calls: readonly ListedCall[] = [...body.open, ...body.data]
      list.replaceChildren(...calls.map((call) => makeRow(call)))
      if (isNew) history.pushState(null, '', hrefWith(path, filters))
      tellFilters(body.next_cursor)
      addUp(
        body.next_cursor === null ? 'No request is like that.' : 'None of the latest is like that. Older ones may be.',
      )
      list.closest('.grid__scroll')?.scrollTo(0, 0)
    } catch {
      // What can not be asked for by the script is asked for by the page.
      if (!signal.aborted) location.assign(hrefWith(path, wanted))
    } finally {
      if (!signal.aborted) place.removeAttribute('aria-busy')
    }
  }

  const follow = (link: HTMLAnchorElement) =>
    link.addEventListener('click', (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return
      event.preventDefault()
      void load(filtersIn(new URL(link.href).searchParams))
    })
  for (const link of [...tabs, older, latest, part<HTMLAnchorElement>('clear')]) follow(link)
  form.addEventListener('submit', (event) => {
    const fields = new FormData(form)
    // One that is looked for by its id is a page of its own.
    if (fields.get('id') !== '') return
    event.preventDefault()
    void load(filtersIn([...fields].map(([name, value]) => [name, String(value)] as const)))
  })
  form.addEventListener('change', ({ target }) => {
    if (target instanceof HTMLSelectElement) form.requestSubmit()
  })
  addEventListener('popstate', () => void load(filtersIn(new URLSearchParams(location.search)), false))

  const rowOfCall = ({ id }: EndedCall) => list.querySelector<HTMLElement>(`[data-id="${id}"]`)

  function add(call: EndedCall): boolean {
    const known = rowOfCall(call)
    if (isEnded(known)) return false
    known?.remove()
    if (!isAmong(call, filters)) return false
    const row = makeRow(call)
    row.className = 'is-new'
    const firstEnded = [...list.querySelectorAll<HTMLElement>('tr')].find(({ dataset }) => !isHeld(dataset.kind))
    list.insertBefore(row, firstEnded ?? null)
    addUp()
    return true
  }

  watch({
    said: part('live'),
    button: part<HTMLButtonElement>('pause'),
    url: `${api}/live?mode=${mode}`,
    // A stream begins with the calls of the last seconds, which the page has.
    isNew: (call) => isAmong(call, filters) && !isEnded(rowOfCall(call)),
    add,
  })
}

const isEnded = (row: HTMLElement | null) => row !== null && !isHeld(row.dataset.kind)

type Watch = {
  readonly said: HTMLElement
  readonly button: HTMLButtonElement
  readonly url: string
  readonly isNew: (call: EndedCall) => boolean
  /** Whether it was added: it may be shown already. */
  readonly add: (call: EndedCall) => boolean
}

/** Tells each call as it ends, unless whoever reads wants to read. */
function watch({ said, button, url, isNew, add }: Watch): void {
  const word = button.querySelector('span') ?? button
  let waiting: EndedCall[] = []
  let isPaused = false
  let added = 0

  function tell(): void {
    said.textContent = added >= ADDED_MOST ? 'Load again for the latest' : isPaused ? 'Paused' : 'Following'
    word.textContent = isPaused ? (waiting.length === 0 ? 'Go on' : `Show ${waiting.length} new`) : 'Pause'
    button.hidden = added >= ADDED_MOST
  }

  const stop = watchCalls({
    url,
    onSign() {},
    onCall(call) {
      if (!isPaused) added += add(call) ? 1 : 0
      else if (isNew(call)) waiting.push(call)
      if (added + waiting.length >= ADDED_MOST) stop()
      tell()
    },
  })
  button.addEventListener('click', () => {
    isPaused = !isPaused
    for (const call of isPaused ? [] : waiting) if (add(call)) added += 1
    if (!isPaused) waiting = []
    tell()
  })
  said.hidden = false
  tell()
}

function rowMaker(templates: HTMLTemplateElement, path: string): (call: ListedCall) => HTMLElement {
  const rows = [...templates.content.querySelectorAll<HTMLElement>('tr')]
  return (call) => {
    const said = rowOf(call, Date.now())
    const row = rows.find(({ dataset }) => dataset.kind === said.kind)?.cloneNode(true)
    if (!(row instanceof HTMLElement)) throw new Error(`the page has no row for what is ${said.kind}`)
    row.dataset.id = said.id
    const time = within(row, 'time')
    time.setAttribute('datetime', said.at)
    time.replaceChildren(`${said.day}${said.clock}`, element('span', 'fb-dim', said.fraction))
    const link = within(row, '.op a')
    link.setAttribute('href', `${path}/${said.id}`)
    for (const [cell, text] of [
      [link, said.operation],
      [within(row, '.op .fb-sub'), said.model],
      [within(row, '.key span'), said.maker],
    ] as const) {
      cell.title = text
      ;(cell.querySelector('bdi') ?? cell).textContent = text
    }
    within(row, '.note').textContent = said.note
    if (said.kind === 'refused') within(row, '.status').textContent = said.status
    if (said.kind !== 'running') within(row, '.ms').textContent = said.took
    if (said.usd !== '') within(row, '.cost').replaceChildren(amountOf(said.usd))
    return row
  }
}

function within(row: HTMLElement, selector: string): HTMLElement {
  const found = row.querySelector<HTMLElement>(selector)
  if (found === null) throw new Error(`a row has no ${selector}`)
  return found
}

function amountIn(row: HTMLElement): string {
  return row.querySelector('.cost data')?.getAttribute('value') ?? '0'
}

function problem(text: string): HTMLElement {
  const said = element('div', 'fb-callout fb-callout--bad', element('p', '', text))
  said.setAttribute('role', 'alert')
  return said
}
