import { z } from 'zod'
import { idForm, timeForm } from '../../api/forms.ts'
import { PAGE, pageOf } from '../../api/pages.ts'
import { wholeNumber } from '../../api/query-forms.ts'
import {
  openRequest,
  pageOfRequests,
  requestFilters,
  requestInFull,
  requestInShort,
  requestOf,
} from '../../callers/request-records.ts'
import { listedTask, shownTasks } from '../../callers/tasks.ts'
import { findKeyIn } from '../../identity/keys-of-account.ts'
import { Fault } from '../../kernel/fault.ts'
import { isId } from '../../kernel/ids.ts'
import { accountIn } from '../../people/membership.ts'
import { LASTS_SECONDS } from '../request-watch.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const { start_time: _, end_time: __, idempotency_key: ___, ...filters } = requestFilters.shape

export const RECORD_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_requests',
    method: 'GET',
    path: '/workspaces/{workspace_id}/requests',
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'Calls of all keys that have ended, the latest first',
    description:
      'Of the last 30 days. A page of a filter that few calls match can have fewer than asked for, and not be the last.',
    tag: 'records',
    query: z.strictObject({
      ...filters,
      key: idForm.optional().meta({ description: 'Calls of this key alone.' }),
      start: timeForm.optional().meta({ description: 'Ended at this time or later.' }),
      end: timeForm.optional().meta({ description: 'Ended before this time.' }),
    }),
    answer: { description: 'A page of calls.', body: pageOf(requestInShort) },
    async run({ pool, time }, { place, mode, query }) {
      const accountId = accountIn(place, mode)
      const { key, start, end, ...filter } = query
      const of = key === undefined ? undefined : await findKeyIn(pool, { workspaceId: place.id, id: key })
      if (of !== undefined && of.mode !== mode) throw new Fault('resource_not_found')
      const whose = { accountId, ...(of !== undefined && { credentialIds: [of.id] }) }
      const times = { startMs: start?.getTime(), endMs: end?.getTime(), nowMs: time.nowMs() }
      return { body: await pageOfRequests(pool, whose, filter, times) }
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
    answer: { description: 'The call, as it ended or as it stands.', body: z.union([requestInFull, openRequest]) },
    async run({ pool }, { place, mode, params: { request_id: id = '' } }) {
      if (!isId(id)) throw new Fault('resource_not_found')
      return { body: await requestOf(pool, { accountId: accountIn(place, mode) }, id) }
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
