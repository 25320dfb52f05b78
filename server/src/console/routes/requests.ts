import { Fault } from '../../kernel/fault.ts'
import { isId } from '../../kernel/ids.ts'
import { may } from '../../kernel/role.ts'
import type { Trouble } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { type Filters, filtersIn, queryOf } from '../listed-calls.ts'
import { keyForm, keyListForm, keyStatesForm } from '../pages/key-parts.ts'
import { openRequestView, refusedRequestView, requestView } from '../pages/request.ts'
import { type RefusedRequest, type RequestPage, requestForm, requestListForm } from '../pages/request-forms.ts'
import type { RefusedShown } from '../pages/request-refused.ts'
import { requestsView } from '../pages/requests.ts'
import type { RouteParts } from '../parts.ts'
import { type ConsoleVisit, pathIn } from '../visits.ts'

const NOTHING: RequestPage = { data: [], open: [], next_cursor: null }
const KEYS_MOST = '100'

export function requestRoutes({ visits, frame, time, operations }: RouteParts): readonly PageRoute[] {
  function show(
    visit: ConsoleVisit,
    title: string,
    main: Parameters<typeof frame.page>[0]['main'],
    status = 200,
  ): Page {
    const where = { workspaceId: visit.workspace.id, mode: visit.mode }
    return frame.page({ status, title, section: 'requests', where, who: visit, main })
  }

  async function list(visit: ConsoleVisit): Promise<Page> {
    const sought = (visit.query.get('id') ?? '').trim().toLowerCase()
    const missing = sought === '' ? null : await lookUp(visit, sought)
    if (missing !== null && !('title' in missing)) return missing
    const filters = filtersIn(visit.query)
    const [{ page, trouble }, keys] = await Promise.all([
      pageOf(visit, filters),
      visit.ask(keyListForm, { operationId: 'list_keys', query: { state: 'active', limit: KEYS_MOST } }),
    ])
    const main = requestsView({
      page,
      filters,
      sought,
      nowMs: time.nowMs(),
      mode: visit.mode,
      operations,
      path: requestsIn(visit),
      api: `/account/v1/workspaces/${visit.workspace.id}/requests`,
      makers: makersOf(page, keys.data, filters),
      trouble: missing ?? trouble,
    })
    return show(visit, 'Requests', main, trouble === null ? 200 : 400)
  }

  async function pageOf({ ask }: ConsoleVisit, filters: Filters) {
    try {
      const query = queryOf(filters, time.nowMs())
      return { page: await ask(requestListForm, { operationId: 'list_requests', query }), trouble: null }
    } catch (error) {
      if (!(error instanceof Fault) || error.status >= 500) throw error
      return { page: NOTHING, trouble: { title: 'That can not be looked for', text: error.message } }
    }
  }

  return [
    visits.get('/requests', list),
    visits.get('/requests/:request', async (visit) => {
      const { request = '' } = visit.params
      const shown = await visit.ask(requestForm, { operationId: 'get_request', params: { request_id: request } })
      const parts = { path: requestsIn(visit), keysPath: pathIn(visit, '/keys'), nowMs: time.nowMs() }
      const live = `/account/v1/workspaces/${visit.workspace.id}/requests/live?mode=${visit.mode}`
      const main =
        shown.outcome === 'refused'
          ? refusedRequestView(shown, parts, await aboutRefused(visit, shown))
          : 'cost' in shown
            ? requestView(shown, parts)
            : openRequestView(shown, { ...parts, live })
      return show(visit, `${shown.operation ?? 'Request'} ${request.slice(0, 8)}`, main)
    }),
  ]
}

/** What the key that was refused has now; of one that is gone, what is kept is enough. */
async function aboutRefused(visit: ConsoleVisit, { made_by: maker }: RefusedRequest): Promise<RefusedShown> {
  const shown = { keysPath: pathIn(visit, '/keys'), mayChange: may(visit.workspace.role, 'keys.manage') }
  if (maker?.kind !== 'key') return { ...shown, key: null, state: undefined }
  const [key, states] = await Promise.all([
    visit.ask(keyForm, { operationId: 'get_key', params: { key_id: maker.id } }),
    visit.ask(keyStatesForm, { operationId: 'list_key_states', query: { keys: maker.id } }),
  ])
  return { ...shown, key: key.state === 'active' ? key : null, state: states.data[0] }
}

const requestsIn = (visit: ConsoleVisit) => pathIn(visit, '/requests')

/** Leads to the call, or says that there is none. */
async function lookUp(visit: ConsoleVisit, id: string): Promise<Page | Trouble> {
  try {
    if (!isId(id)) throw new Fault('resource_not_found')
    await visit.ask(requestForm, { operationId: 'get_request', params: { request_id: id } })
    return seeOther(`${requestsIn(visit)}/${id}`)
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'resource_not_found') throw error
    const other = visit.mode === 'live' ? 'test' : 'live'
    return {
      title: 'No request has this id',
      text: `It is not among those of ${visit.mode} money of the last 30 days. It may be one of ${other} money, or of another workspace. X-Request-ID of the answer is the id.`,
    }
  }
}

/** Keys that work, and what made the calls that are shown. */
function makersOf(page: RequestPage, keys: readonly { id: string; name: string }[], { key }: Filters) {
  const makers = new Map(keys.map(({ id, name }) => [id, name]))
  for (const { made_by: maker } of [...page.open, ...page.data]) if (maker !== null) makers.set(maker.id, maker.name)
  if (key !== undefined && !makers.has(key)) makers.set(key, key)
  return [...makers].toSorted(([, one], [, other]) => one.localeCompare(other))
}
