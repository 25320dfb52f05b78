import { z } from 'zod'
import { fromLedger } from '../api/from-ledger.ts'
import { parsed } from '../api/route.ts'
import { claimKeyOf, IDEMPOTENCY, isKey } from '../gateway/idempotency.ts'
import { findRefusedWithKey } from '../gateway/read-refused-calls.ts'
import { seesBalance } from '../gateway/require-scope.ts'
import type { Caller } from '../identity/caller.ts'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import { isId } from '../kernel/ids.ts'
import { findOpen } from '../ledger/open-requests.ts'
import { findClaiming, findEnded } from '../ledger/requests.ts'
import { millisecondsIn } from './milliseconds-in.ts'
import type { CallerParts } from './parts.ts'
import { inShortRefused } from './refused-records.ts'
import { filterOf, requestFilters } from './request-filters.ts'
import {
  inShort,
  ofOpen,
  openRequest,
  pageOfRequests,
  refusedRequest,
  requestInFull,
  requestInShort,
  requestOf,
} from './request-records.ts'
import { type CallerRoute, forAgents, forKey } from './route.ts'
import { whoseRecords } from './whose-records.ts'

const list = z.strictObject({
  data: z.array(requestInShort),
  open: z.array(openRequest).optional().meta({
    description: 'Where idempotency_key was asked for: those that run, or whose outcome nobody knows yet.',
  }),
  refused: z.array(refusedRequest).optional().meta({
    description:
      'Where idempotency_key was asked for: the latest that were refused, which are no calls that the key belongs to.',
  }),
  next_cursor: z.string().nullable(),
})

const sought = z
  .strictObject({
    request_id: z.string().max(200).optional().describe('Of the call, as its answer told it'),
    idempotency_key: z
      .string()
      .max(255)
      .refine(isKey, 'must have 1 to 255 visible ASCII characters')
      .optional()
      .describe('That the call was sent with; of a call of a batch followed by #1, #2 …'),
  })
  .refine(
    ({ request_id, idempotency_key }) => (request_id === undefined) !== (idempotency_key === undefined),
    'Give request_id or idempotency_key, one of the two.',
  )

/** What calls of this key cost, why, and how they went. */
export const REQUEST_ROUTES: readonly CallerRoute[] = [
  forKey({
    operationId: 'list_requests',
    method: 'GET',
    path: '/v1/requests',
    summary: 'Calls of this key that have ended or were refused, the latest first',
    tag: 'account',
    counts: 'requests',
    describedQuery: requestFilters,
    answer: { description: 'A page of calls.', body: list },
    async run(parts, { caller, query }) {
      const { pool, time } = parts
      const detail = millisecondsIn(query.start_time)
      if (detail !== undefined) throw invalidRequest(detail, 'start_time')
      const filters = parsed(requestFilters, query)
      if (filters.idempotency_key !== undefined) {
        requireAlone(query)
        return { body: await callsWithKey(parts, caller, filters.idempotency_key, filters.operation) }
      }
      const times = { startMs: inMs(filters.start_time), endMs: inMs(filters.end_time), nowMs: time.nowMs() }
      const whose = { accountId: caller.accountId, credentialIds: await whoseRecords(pool, caller) }
      return { body: await fromLedger(pageOfRequests(pool, filterOf(whose, filters, times))) }
    },
  }),
  forKey({
    operationId: 'get_request',
    method: 'GET',
    path: '/v1/requests/{id}',
    params: { id: 'The id of a request, as X-Request-ID told it.' },
    summary: 'One call: what it cost, why, and how it went',
    tag: 'account',
    counts: 'requests',
    refusesAs: 'one_of_yours',
    codes: ['resource_not_found'],
    answer: {
      description: 'The call, as it ended or as it stands.',
      body: z.union([requestInFull, openRequest, refusedRequest]),
    },
    agents: forAgents({
      id: 'get_request',
      summary: 'See the outcome and the charge of a request, by request_id or idempotency_key',
      asks: 'lookup outcome unknown receipt idempotency',
      example: { request_id: '<request_id>' },
      category: 'account',
      input: sought,
      run: async (parts, { caller }, { request_id: id = '', idempotency_key: key }) =>
        key === undefined ? ownRequest(parts, caller, id) : callsWithKey(parts, caller, key),
    }),
    run: async (parts, { caller, params: { id = '' } }) => ({ body: await ownRequest(parts, caller, id) }),
  }),
]

async function ownRequest({ pool }: Pick<CallerParts, 'pool'>, caller: Caller, id: string) {
  if (!isId(id)) throw new Fault('resource_not_found')
  const reader = { whose: await whoseRecords(pool, caller), seesBalance: seesBalance(caller) }
  return fromLedger(requestOf(pool, reader, id))
}

const inMs = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1_000)

const BESIDE_KEY: ReadonlySet<string> = new Set(['idempotency_key', 'operation'])

function requireAlone(query: unknown): void {
  if (Object.keys(Object(query)).every((name) => BESIDE_KEY.has(name))) return
  throw invalidRequest('idempotency_key can be combined only with operation. Remove the other filters.')
}

/** The calls of an operation, or of any, that have a key now. One that ended uncharged has given it back, and is not among them. */
async function callsWithKey(
  { pool, catalogue }: Pick<CallerParts, 'pool' | 'catalogue'>,
  { credentialId }: Caller,
  key: string,
  operation?: string,
) {
  const operations = operation === undefined ? catalogue.operations : [{ id: operation }]
  const keys = operations.map(({ id }) => claimKeyOf(id, key))
  const data: ReturnType<typeof inShort>[] = []
  const running: ReturnType<typeof ofOpen>[] = []
  for (const id of await fromLedger(findClaiming(pool, credentialId, IDEMPOTENCY, keys))) {
    // In this order, as for one that is asked for by its id.
    const open = await fromLedger(findOpen(pool, [credentialId], id))
    const ended = open === undefined ? await fromLedger(findEnded(pool, [credentialId], id)) : undefined
    if (open !== undefined) running.push(ofOpen(open))
    else if (ended !== undefined) data.push(inShort(ended))
  }
  const refused = await fromLedger(findRefusedWithKey(pool, credentialId, { idempotencyKey: key, operation }))
  return { data, open: running, refused: refused.map(inShortRefused), next_cursor: null }
}
