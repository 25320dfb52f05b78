import { z } from 'zod'
import { Fault } from '../../kernel/fault.ts'
import { ZERO } from '../../kernel/money.ts'
import { may } from '../../kernel/role.ts'
import type { Trouble } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { EndedCall } from '../listed-calls.ts'
import { firstRun } from '../pages/first-run.ts'
import { hrefIn } from '../pages/frame.ts'
import { keyListForm, keyStatesForm, type ShownKey } from '../pages/key-parts.ts'
import { overview } from '../pages/overview.ts'
import { balanceForm, budgetsForm, usageForm } from '../pages/overview-data.ts'
import { requestListForm } from '../pages/request-forms.ts'
import { groupingIn } from '../pages/spend.ts'
import type { RouteParts } from '../parts.ts'
import { type ConsoleVisit, pathIn } from '../visits.ts'

const keyList = z.object({ data: z.array(z.object({ id: z.string(), name: z.string() })) })
const madeKey = z.object({ id: z.string(), name: z.string(), secret: z.string().nullable() })

const FIRST_KEY = '/first-key'
const FIRST_BUDGET = { period: 'day', amount_usd: '1.00' } as const

export function overviewRoutes(parts: RouteParts): readonly PageRoute[] {
  const { visits, frame, time } = parts

  async function factsOf({ ask }: ConsoleVisit) {
    const [money, keys] = await Promise.all([
      ask(balanceForm, { operationId: 'get_balance' }),
      ask(keyList, { operationId: 'list_keys', query: { limit: '1', state: 'active' } }),
    ])
    return { available: money.available, activeKey: keys.data[0] }
  }

  function showFirst(
    visit: ConsoleVisit,
    { available, activeKey }: Awaited<ReturnType<typeof factsOf>>,
    made: z.output<typeof madeKey> | null,
    trouble?: Trouble,
  ): Page {
    const { mode, workspace, formToken, idempotencyKey } = visit
    const where = { workspaceId: workspace.id, mode }
    const main = firstRun(parts, {
      formToken,
      idempotencyKey,
      mode,
      available,
      paths: {
        key: hrefIn(where, FIRST_KEY),
        keys: hrefIn(where, '/keys'),
        overview: hrefIn(where),
        live: `/account/v1/workspaces/${workspace.id}/requests/live?mode=${mode}`,
      },
      secret: made?.secret ?? null,
      keyName: (made ?? activeKey)?.name ?? null,
      mayMakeKeys: may(workspace.role, 'keys.manage'),
      ...(trouble !== undefined && { trouble }),
    })
    return frame.page({ title: 'Overview', section: 'overview', where, who: visit, main })
  }

  /** The first page as long as no call has ended; what was spent afterwards. */
  async function show(visit: ConsoleVisit): Promise<Page> {
    const { ask, mode, workspace } = visit
    const nowMs = time.nowMs()
    const now = new Date(nowMs)
    const from = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()))
    const by = groupingIn(visit.query.get('by'))
    const [balance, requests] = await Promise.all([
      ask(balanceForm, { operationId: 'get_balance' }),
      ask(requestListForm, { operationId: 'list_requests', query: { limit: '50' } }),
    ])
    if (requests.data.length + requests.open.length === 0 && balance.charged === ZERO)
      return showFirst(visit, await factsOf(visit), null)
    const [usage, budgets, keys] = await Promise.all([
      ask(usageForm, { operationId: 'get_usage', query: { start: from.toISOString(), group_by: by } }),
      ask(budgetsForm, { operationId: 'list_budgets', query: { kind: 'workspace' } }),
      ask(keyListForm, { operationId: 'list_keys', query: { kind: 'key', state: 'active', limit: '50' } }),
    ])
    const ids = keys.data.map(({ id }) => id).join(',')
    const states =
      ids === '' ? { data: [] } : await ask(keyStatesForm, { operationId: 'list_key_states', query: { keys: ids } })
    const where = { workspaceId: workspace.id, mode }
    const main = overview({
      nowMs,
      from,
      balance,
      usage,
      requests,
      keys: keys.data,
      by,
      path: hrefIn(where),
      tags: tagNamesIn(requests.data, keys.data),
      names: new Map([...keys.data, ...makersIn(requests.data)].map(({ id, name }) => [id, name])),
      budget: budgets.data.find(({ period }) => period === 'month') ?? null,
      states: new Map(states.data.map((state) => [state.id, state])),
      keysPath: hrefIn(where, '/keys'),
      requestsPath: hrefIn(where, '/requests'),
      mayMakeKeys: may(workspace.role, 'keys.manage'),
    })
    return frame.page({ title: 'Overview', section: 'overview', where, who: visit, main })
  }

  async function makeKey(visit: ConsoleVisit): Promise<Page> {
    // Read before the key is made: nothing that can't be read may keep its secret from being shown.
    const facts = await factsOf(visit)
    try {
      const { body } = await visit.change({
        operationId: 'create_key',
        body: { name: 'First key', budget: FIRST_BUDGET },
      })
      const made = madeKey.parse(body)
      // A page that is loaded again sends its form again, and a secret is told once.
      return made.secret === null ? seeOther(pathIn(visit)) : showFirst(visit, facts, made)
    } catch (error) {
      if (!(error instanceof Fault) || error.status >= 500) throw error
      return {
        ...showFirst(visit, facts, null, { title: 'No key was made', text: error.message }),
        status: error.status,
      }
    }
  }

  return [
    visits.home(async (visit, workspaces) => {
      const [first] = workspaces
      // Who belongs to no workspace makes one there.
      if (first === undefined) return seeOther('/sessions')
      const { charged } = await visits.askAt(visit, first.id, 'live')(balanceForm, { operationId: 'get_balance' })
      return seeOther(hrefIn({ workspaceId: first.id, mode: charged > ZERO ? 'live' : 'test' }))
    }),
    visits.get('', show),
    visits.post(FIRST_KEY, makeKey),
  ]
}

const TAG_NAMES = 4

/** Those of the latest calls and of keys: nobody keeps a list of them. */
function tagNamesIn(calls: readonly EndedCall[], keys: readonly ShownKey[]): readonly string[] {
  const ofKeys = keys.flatMap(({ tags }) => tags ?? []).map((tag) => tag.slice(0, tag.indexOf('=')))
  return [...new Set([...calls.flatMap(({ tags }) => Object.keys(tags)), ...ofKeys])].toSorted().slice(0, TAG_NAMES)
}

const makersIn = (calls: readonly EndedCall[]) => calls.flatMap(({ made_by: maker }) => (maker === null ? [] : [maker]))
