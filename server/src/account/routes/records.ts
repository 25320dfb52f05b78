import { z } from 'zod'
import { idForm, timeForm } from '../../api/forms.ts'
import { PAGE, pageOf } from '../../api/pages.ts'
import { wholeNumber } from '../../api/query-forms.ts'
import { filterOf, requestFilters } from '../../callers/request-filters.ts'
import {
  listedRequests,
  ofOpen,
  openRequest,
  refusedRequest,
  requestInFull,
  requestInShort,
  requestWithCredential,
} from '../../callers/request-records.ts'
import { listedTask, shownTasks } from '../../callers/tasks.ts'
import { isCredentialOf } from '../../identity/credential-names.ts'
import { Fault } from '../../kernel/fault.ts'
import { isId } from '../../kernel/ids.ts'
import { may } from '../../kernel/role.ts'
import { listOpen } from '../../ledger/open-requests.ts'
import { accountIn } from '../../people/membership.ts'
import { madeBy, makersOf } from '../request-makers.ts'
import { LASTS_SECONDS } from '../request-watch.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const { start_time: _, end_time: __, idempotency_key: ___, ...filters } = requestFilters.shape

const ended = requestInShort.extend(madeBy)
const open = openRequest.extend(madeBy)

const NONE = { listed: [], next_cursor: null }

export const RECORD_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_requests',
    method: 'GET',
    path: '/workspaces/{workspace_id}/requests',
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'Calls of all keys and grants, the latest first',
    description:
      'Of the last 30 days. `data` has those that have ended, and of the last 7 days those that were refused. A page of a filter that few calls match can have fewer than asked for, and not be the last. `open` has those that run, or whose outcome nobody knows yet, by the same filters, of which cost means what is held: the latest, on a first page that names no other outcome.',
    tag: 'records',
    query: z.strictObject({
      ...filters,
      outcome: z.enum(['posted', 'voided', 'refused', 'open']).optional().meta({
        description: 'Charged, not charged, refused, or none yet: then `data` is empty.',
      }),
      key: idForm.optional().meta({ description: 'Calls of this key or grant alone.' }),
      start: timeForm.optional().meta({ description: 'Ended at this time or later.' }),
      end: timeForm.optional().meta({ description: 'Ended before this time.' }),
    }),
    answer: { description: 'A page of calls.', body: pageOf(ended).extend({ open: z.array(open) }) },
    async run({ pool, time }, { place, mode, query }) {
      const accountId = accountIn(place, mode)
      const { key, start, end, outcome, ...filters } = query
      if (key !== undefined && !(await isCredentialOf(pool, accountId, key))) throw new Fault('resource_not_found')
      const whose = { accountId, ...(key !== undefined && { credentialIds: [key] }) }
      const times = { startMs: start?.getTime(), endMs: end?.getTime(), nowMs: time.nowMs() }
      const isOfOpen = outcome === 'open'
      const filter = filterOf(whose, { ...filters, ...(!isOfOpen && outcome !== undefined && { outcome }) }, times)
      const isFirst = filters.cursor === undefined && (isOfOpen || outcome === undefined)
      // In this order: one that ends between the two is in both, and in none otherwise.
      const running = isFirst ? await listOpen(pool, filter) : []
      const { listed, next_cursor } = isOfOpen ? NONE : await listedRequests(pool, filter)
      const opened = running.map((row) => ({ credentialId: row.credential_id, body: ofOpen(row) }))
      const named = await makersOf(pool, [...listed, ...opened])
      const over = new Set(listed.map(({ body: { id } }) => id))
      const still = opened.filter(({ body: { id } }) => !over.has(id))
      return { body: { data: listed.map(named), open: still.map(named), next_cursor } }
    },
  }),
  inWorkspace({
    operationId: 'watch_requests',
    method: 'GET',
    path: '/workspaces/{workspace_id}/requests/live',
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'Calls of all keys as they end',
    description:
      'Server-sent events. An event request has a call as the list shows it, at most a second or two after it ended, and at most 50 a second; look is sent every few seconds where none ended. The first are those of the last ten seconds, so that whoever connects again within that time misses none. A stream ends after ten minutes, and when you may no longer see the calls: connect again. 4 streams of a person and 500 of a process run at once; others are refused with 429 and Retry-After.',
    tag: 'records',
    query: z.strictObject({
      seconds: wholeNumber(1, LASTS_SECONDS).default(LASTS_SECONDS).meta({ description: 'How long it lasts.' }),
    }),
    answer: { description: 'The events.', body: z.string(), type: 'text/event-stream' },
    codes: ['rate_limit_exceeded'],
    async run({ requestWatch }, { member, place, mode, stillMay, query: { seconds } }) {
      const whose = { accountId: accountIn(place, mode), personId: member.personId, stillMay }
      return { body: requestWatch.open(whose, seconds), type: 'text/event-stream' }
    },
  }),
  inWorkspace({
    operationId: 'get_request',
    method: 'GET',
    path: '/workspaces/{workspace_id}/requests/{request_id}',
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'One call: what it cost, why, and how it went',
    tag: 'records',
    answer: {
      description: 'The call, as it ended or as it stands.',
      body: z.union([requestInFull.extend(madeBy), open, refusedRequest.extend(madeBy)]),
    },
    async run({ pool }, { place, mode, params: { request_id: id = '' } }) {
      if (!isId(id)) throw new Fault('resource_not_found')
      const reader = { whose: { accountId: accountIn(place, mode) }, seesBalance: may(place.role, 'billing.read') }
      const found = await requestWithCredential(pool, reader, id)
      const named = await makersOf(pool, [found])
      return { body: named<typeof found.body>(found) }
    },
  }),
  inWorkspace({
    operationId: 'list_tasks',
    method: 'GET',
    path: '/workspaces/{workspace_id}/tasks',
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'Tasks of all keys, the newest first',
    description: 'Those that run, and those that ended within a day.',
    tag: 'records',
    query: z.strictObject(PAGE),
    answer: { description: 'A page of tasks.', body: pageOf(listedTask) },
    async run({ tasks }, { place, mode, query: { limit, cursor } }) {
      const page = { limit, ...(cursor !== undefined && { before: cursor }) }
      const { data, next_before: next } = shownTasks(await tasks.listOfAccount(accountIn(place, mode), page))
      return {
        body: {
          data,
          next_cursor: next === null ? null : Buffer.from(next).toString('base64url'),
        },
      }
    },
  }),
]
