import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import {
  decideQuotaRequest,
  findQuotaRequest,
  listQuotaRequests,
  QUOTA_STATES,
  type QuotaDecision,
  type QuotaRequest,
} from '../people/quota-requests.ts'
import { action, field, type OperatorParts } from './action.ts'
import { afterField, idField, LISTED, NOBODY_TOLD, textOf, unknown } from './fields.ts'
import { limitFields, limitsLine } from './limits.ts'

const list = action({
  name: 'quota list',
  summary: 'list quota requests, newest first',
  effect: 'reads',
  positional: [],
  input: z.object({
    state: field(
      'state',
      `only requests in this state: ${QUOTA_STATES.join(', ')}, or all (default: open)`,
      stateOf,
    ).default('open'),
    after: afterField('requests'),
  }),
  run: ({ pool }, { state, after }) =>
    listQuotaRequests(pool, { state: state === 'all' ? undefined : state, after, most: LISTED }),
  lines: (requests) => [
    ...requests.map(lineOf),
    ...(requests.length === 0 ? ['There are no such quota requests.'] : []),
    ...(requests.length === LISTED ? [`There may be more. For the next page, add --after ${requests.at(-1)?.id}`] : []),
  ],
})

function stateOf(text: string): (typeof QUOTA_STATES)[number] | 'all' {
  const found = QUOTA_STATES.find((one) => one === text)
  if (found === undefined && text !== 'all') throw new Error(`must be ${QUOTA_STATES.join(', ')} or all`)
  return found ?? 'all'
}

function lineOf({ id, workspaceId, state, requestsPerMinute, tokensPerMinute, targets }: QuotaRequest): string {
  return `${id}  ${state}  account ${workspaceId}  ${requestsPerMinute} requests, ${tokensPerMinute} tokens per minute  for ${targets.join(', ')}`
}

const request = idField('request', 'id of the quota request')

const show = action({
  name: 'quota show',
  summary: 'show a quota request',
  effect: 'reads',
  positional: ['request'],
  input: z.object({ request }),
  run: ({ pool }, { request: id }) => findQuotaRequest(pool, { id }).catch(unknown(`quota request ${id}`)),
  lines: ({ granted, note, ...found }) => [
    `Quota request ${found.id}, ${found.state}, made ${found.createdAt.toISOString()}`,
    `Account: ${found.workspaceId}`,
    `Expected peak: ${found.requestsPerMinute} requests per minute, ${found.tokensPerMinute} tokens per minute`,
    `For: ${found.targets.join(', ')}`,
    `Use case: ${found.useCase}`,
    ...(granted === null ? [] : [`Granted: ${limitsLine(granted)}`]),
    ...(note === null ? [] : [`Note: ${note}`]),
  ],
})

const note = field('text', 'what to tell them', (text) => textOf(text, 2_000))

async function decide({ pool, by, letters }: OperatorParts, id: Id, decision: QuotaDecision) {
  const { sendMail = null, siteUrl = '' } = (await letters()) ?? {}
  const decided = await decideQuotaRequest({ pool, sendMail, siteUrl }, by, id, decision).catch(
    unknown(`quota request ${id}`),
  )
  return { ...decided, isTold: sendMail !== null }
}

function decisionLines({ granted, limitsBefore, isTold }: Awaited<ReturnType<typeof decide>>): readonly string[] {
  return [
    ...(granted === null
      ? ['Refused: the limits stay as they are.']
      : [`Before: each key had ${limitsLine(limitsBefore)}.`, `Approved. Each key has ${limitsLine(granted)}.`]),
    ...(isTold ? [] : [NOBODY_TOLD]),
  ]
}

const approve = action({
  name: 'quota approve',
  summary: 'approve a quota request: raises the limits of the account, lowers none, and tells who asked by mail',
  effect: 'writes',
  positional: ['request'],
  input: z.object({
    request,
    note,
    ...limitFields({
      rpm: ' (default: as requested)',
      tpm: ' (default: as requested)',
      concurrency: ' (default: those of the tier that has such requests and tokens)',
    }),
  }),
  run: (parts, { request: id, note: text, rpm, tpm, concurrency }) =>
    decide(parts, id, {
      isApproved: true,
      note: text,
      limits: {
        ...(rpm !== undefined && { requestsPerMinute: rpm }),
        ...(tpm !== undefined && { tokensPerMinute: tpm }),
        ...(concurrency !== undefined && { concurrency }),
      },
    }),
  lines: decisionLines,
})

const refuse = action({
  name: 'quota refuse',
  summary: 'refuse a quota request, and tell who asked by mail',
  effect: 'writes',
  positional: ['request'],
  input: z.object({ request, note }),
  run: (parts, { request: id, note: text }) => decide(parts, id, { isApproved: false, note: text }),
  lines: decisionLines,
})

export const quota = [list, show, approve, refuse]
