import { z } from 'zod'
import {
  openRequest,
  pageOfRequests,
  requestFilters,
  requestInFull,
  requestInShort,
  requestOf,
} from '../../http/routes/requests.ts'
import { listedTask, shownTasks } from '../../http/routes/tasks.ts'
import { findKeyIn } from '../../identity/keys-of-account.ts'
import { accountIn } from '../../identity/people/place.ts'
import { Fault } from '../../kernel/fault.ts'
import { isId } from '../../kernel/ids.ts'
import { idForm, timeForm } from '../forms.ts'
import { PAGE, pageOf } from '../pages.ts'
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
      return { body: toldOf(await requestOf(pool, { accountId: accountIn(place, mode) }, id)) }
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
          data: data as z.input<typeof listedTask>[],
          next_cursor: next === null ? null : Buffer.from(next).toString('base64url'),
        },
      }
    },
  }),
]

type Requested = z.input<typeof requestInFull> | z.input<typeof openRequest>

/** What the callers' API tells by the same schema. */
const toldOf = (told: unknown) => told as Requested
