import { z } from 'zod'
import { PAGE, pageFrom, pageOf } from '../../api/pages.ts'
import {
  findQuotaRequest,
  listQuotaRequests,
  makeQuotaRequest,
  QUOTA_STATES,
  type QuotaRequest,
  withdrawQuotaRequest,
} from '../../people/quota-requests.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const limits = { requests_per_minute: z.int(), tokens_per_minute: z.int() }
const request = z.strictObject({
  id: z.string(),
  workspace_id: z.string(),
  state: z.enum(QUOTA_STATES),
  peak: z.strictObject(limits).meta({ description: 'What is expected at the most.' }),
  targets: z.array(z.string()),
  use_case: z.string(),
  note: z.string().nullable().meta({ description: 'What the operator says to the decision.' }),
  granted: z
    .strictObject({ ...limits, concurrency: z.int() })
    .nullable()
    .meta({ description: 'The limits of each key from the approval on.' }),
  created_at: z.iso.datetime(),
  decided_at: z.iso.datetime().nullable(),
})

export function toldQuotaRequest(one: QuotaRequest): z.output<typeof request> {
  const { granted } = one
  return {
    ...{ id: one.id, workspace_id: one.workspaceId, state: one.state, targets: [...one.targets] },
    peak: { requests_per_minute: one.requestsPerMinute, tokens_per_minute: one.tokensPerMinute },
    ...{ use_case: one.useCase, note: one.note },
    granted: granted && {
      ...{ requests_per_minute: granted.requestsPerMinute, tokens_per_minute: granted.tokensPerMinute },
      concurrency: granted.concurrency,
    },
    created_at: one.createdAt.toISOString(),
    decided_at: one.decidedAt?.toISOString() ?? null,
  }
}

const ALL = '/workspaces/{workspace_id}/quota-requests'
const ONE = `${ALL}/{quota_request_id}` as const

export const QUOTA_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_quota_requests',
    method: 'GET',
    path: ALL,
    need: 'workspace.read',
    tokens: 'own mode',
    summary: 'Quota requests of a workspace, the newest first',
    tag: 'quota',
    query: z.strictObject({
      ...PAGE,
      state: z.enum(QUOTA_STATES).optional().meta({ description: 'Only those in this state.' }),
    }),
    answer: { description: 'A page of quota requests.', body: pageOf(request) },
    async run({ pool }, { place, query: { limit, cursor, state } }) {
      const rows = await listQuotaRequests(pool, { workspaceId: place.id, state, after: cursor, most: limit + 1 })
      return { body: pageFrom(rows, limit, toldQuotaRequest) }
    },
  }),
  inWorkspace({
    operationId: 'create_quota_request',
    method: 'POST',
    path: ALL,
    need: 'keys.manage',
    tokens: 'own mode',
    summary: 'Ask for higher limits',
    description:
      'An operator approves or refuses it, with a note, and you are told by mail. From an approval on, the next answers to calls have the new limits in their headers. A workspace has one open request at a time, and makes three a day.',
    tag: 'quota',
    body: z.strictObject({
      requests_per_minute: z.int().positive().max(100_000_000).meta({ description: 'The expected peak.' }),
      tokens_per_minute: z
        .int()
        .positive()
        .max(1_000_000_000_000)
        .meta({ description: 'The expected peak, input and output together.' }),
      targets: z
        .array(z.string().trim().min(1).max(200))
        .min(1)
        .max(50)
        .meta({ description: 'The models or endpoints that it is for.' }),
      use_case: z.string().trim().min(1).max(2_000).meta({ description: 'What it is for, for the operator to read.' }),
    }),
    answer: { status: 201, description: 'The request.', body: request, hasEtag: true },
    codes: ['quota_request_open'],
    async run({ ids, sendMail, operatorMail, siteUrl }, { member, place, body, on }) {
      const made = await makeQuotaRequest({ pool: on, ids, sendMail, operatorMail, siteUrl }, member.by, {
        ...{ workspaceId: place.id, personId: member.personId, targets: [...new Set(body.targets)] },
        ...{ requestsPerMinute: body.requests_per_minute, tokensPerMinute: body.tokens_per_minute },
        useCase: body.use_case,
      })
      return { body: toldQuotaRequest(made) }
    },
  }),
  inWorkspace({
    operationId: 'get_quota_request',
    method: 'GET',
    path: ONE,
    need: 'workspace.read',
    tokens: 'own mode',
    summary: 'A quota request, and what was decided',
    tag: 'quota',
    answer: { description: 'The request.', body: request, hasEtag: true },
    run: async ({ pool }, { place, params }) => ({
      body: toldQuotaRequest(
        await findQuotaRequest(pool, { workspaceId: place.id, id: params.quota_request_id ?? '' }),
      ),
    }),
  }),
  inWorkspace({
    operationId: 'withdraw_quota_request',
    method: 'DELETE',
    path: ONE,
    need: 'keys.manage',
    tokens: 'own mode',
    whileClosing: true,
    summary: 'Withdraw a quota request that is open',
    tag: 'quota',
    answer: { description: 'The request.', body: request, hasEtag: true },
    codes: ['quota_request_decided'],
    async run(_, { member, place, params, on }) {
      const found = await findQuotaRequest(on, { workspaceId: place.id, id: params.quota_request_id ?? '' })
      return { body: toldQuotaRequest(await withdrawQuotaRequest({ pool: on }, member.by, found.id)) }
    },
  }),
]
