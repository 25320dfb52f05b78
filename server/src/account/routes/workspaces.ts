import { z } from 'zod'
import { PAGE, pageAmong, pageOf } from '../../api/pages.ts'
import { loadWorkspace } from '../../identity/workspace-record.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import { ROLES } from '../../kernel/role.ts'
import { type Membership, workspacesOf } from '../../people/members.ts'
import { findPlace } from '../../people/membership.ts'
import { readName } from '../../people/names.ts'
import type { Transactions } from '../../storage/transaction.ts'
import { agreedIn, tierIn } from '../../workspaces/tier.ts'
import { renameWorkspace } from '../../workspaces/workspaces.ts'
import { type AccountRoute, forAnyMember, inWorkspace } from '../route.ts'

const suspended = z.strictObject({ since: z.iso.datetime(), reason: z.string() }).nullable().meta({
  description:
    'Since when the operator has suspended it, and why: its keys and grants are refused. Null where it is not.',
})

const listed = z.strictObject({ id: z.string(), name: z.string(), role: z.enum(ROLES), suspended })

const workspace = listed.extend({
  member_id: z.string().meta({ description: 'By which you are a member.' }),
  tier: z.enum(['free', 'starter', 'growth', 'enterprise']),
  tier_set_by: z
    .enum(['operator', 'payments'])
    .meta({ description: 'Whether payments have earned it, or the operator has granted more than payments earn.' }),
  limits: z
    .strictObject({ requests_per_minute: z.int(), tokens_per_minute: z.int(), concurrency: z.int() })
    .meta({ description: 'Of each key, where it has none of its own that are lower.' }),
  closes_at: z.iso.datetime().nullable().meta({
    description: 'When it is closed for good, with its keys refused until then; null where nobody has asked for that.',
  }),
})

const name = z.string().min(1).max(400).meta({ description: 'At most 100 characters.' })

async function toldOf(on: Transactions, personId: Id, workspaceId: Id): Promise<z.output<typeof workspace>> {
  const { id, name: called, role, memberId, closesAt, ...stop } = await findPlace(on, { personId, workspaceId })
  const record = await loadWorkspace(on, id)
  if (record === undefined) throw new Fault('resource_not_found')
  const { tier, limits } = tierIn(record)
  return {
    ...{ id, name: called, role, member_id: memberId, tier },
    tier_set_by: agreedIn(record) === null ? 'payments' : 'operator',
    limits: {
      requests_per_minute: limits.requestsPerMinute,
      tokens_per_minute: limits.tokensPerMinute,
      concurrency: limits.concurrency,
    },
    closes_at: closesAt?.toISOString() ?? null,
    suspended: suspendedIn(
      stop.suspendedAt === null ? null : { since: stop.suspendedAt, reason: stop.suspendedReason ?? '' },
    ),
  }
}

function suspendedIn(suspension: Membership['suspension']): z.output<typeof suspended> {
  return suspension && { since: suspension.since.toISOString(), reason: suspension.reason }
}

export const WORKSPACE_ROUTES: readonly AccountRoute[] = [
  forAnyMember({
    operationId: 'list_workspaces',
    method: 'GET',
    path: '/workspaces',
    tokens: 'both',
    summary: 'Workspaces that you are a member of, the oldest first',
    tag: 'workspaces',
    query: z.strictObject(PAGE),
    answer: { description: 'A page of workspaces.', body: pageOf(listed) },
    async run({ pool }, { member: { personId, granted }, query }) {
      const all = await workspacesOf(pool, personId)
      const seen = all.filter(({ id }) => granted === null || id === granted.workspaceId)
      const body = pageAmong(seen, query, ({ id, name: called, role, suspension }) => ({
        id,
        name: called,
        role,
        suspended: suspendedIn(suspension),
      }))
      return { body }
    },
  }),
  forAnyMember({
    operationId: 'create_workspace',
    method: 'POST',
    path: '/workspaces',
    tokens: 'never',
    summary: 'Make a workspace, of which you are the owner',
    tag: 'workspaces',
    body: z.strictObject({ name }),
    answer: { status: 201, description: 'The workspace.', body: workspace, hasEtag: true },
    codes: ['quota_exceeded'],
    async run({ people }, { member: { personId }, body, on, visitor }) {
      const { id } = await people.createWorkspace(personId, body.name, visitor, on)
      return { body: await toldOf(on, personId, id) }
    },
  }),
  inWorkspace({
    operationId: 'get_workspace',
    method: 'GET',
    path: '/workspaces/{workspace_id}',
    need: 'workspace.read',
    tokens: 'both',
    summary: 'A workspace, with its tier and its limits',
    tag: 'workspaces',
    answer: { description: 'The workspace.', body: workspace, hasEtag: true },
    run: async (_, { member, place, on }) => ({ body: await toldOf(on, member.personId, place.id) }),
  }),
  inWorkspace({
    operationId: 'update_workspace',
    method: 'PATCH',
    path: '/workspaces/{workspace_id}',
    need: 'workspace.manage',
    tokens: 'own mode',
    summary: 'Rename a workspace',
    tag: 'workspaces',
    body: z.strictObject({ name }),
    answer: { description: 'The workspace.', body: workspace, hasEtag: true },
    async run(_, { member, place, body, on, requireMatch }) {
      requireMatch(await toldOf(on, member.personId, place.id))
      await renameWorkspace({ pool: on }, member.by, place.id, readName(body.name))
      return { body: await toldOf(on, member.personId, place.id) }
    },
  }),
]
