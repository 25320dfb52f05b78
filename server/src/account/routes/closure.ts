import { z } from 'zod'
import { invalidRequest } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import { memberIdsOf } from '../../people/members.ts'
import type { Transactions } from '../../storage/transaction.ts'
import {
  askClosure,
  type Closure,
  cancelClosure,
  findClosure,
  findLastClosureId,
  GRACE_DAYS,
} from '../../workspaces/closures.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const closure = z.strictObject({
  id: z.string().nullable().meta({
    description: 'The closure that was asked for last, also where it was canceled; null where nobody ever asked.',
  }),
  state: z.enum(['open', 'closing']).meta({ description: 'open where nobody has asked to close the workspace.' }),
  calls: z.enum(['accepted', 'refused']).meta({ description: 'Whether its keys and grants are let in.' }),
  asked_at: z.iso.datetime().nullable(),
  asked_by: z
    .string()
    .nullable()
    .meta({ description: 'The member who asked; null where nobody did, and for who is no member any more.' }),
  closes_at: z.iso
    .datetime()
    .nullable()
    .meta({ description: 'When it is closed for good, or a little later: it waits for calls that run.' }),
  can_be_canceled: z.boolean(),
})

async function toldOf(on: Transactions, workspaceId: Id, asked: Closure | null): Promise<z.output<typeof closure>> {
  if (asked === null)
    return {
      id: await findLastClosureId(on, workspaceId),
      ...{ state: 'open', calls: 'accepted', asked_at: null, asked_by: null, closes_at: null },
      can_be_canceled: false,
    }
  const members = await memberIdsOf(on, workspaceId)
  return {
    ...{ id: asked.id, state: 'closing', calls: 'refused', asked_at: asked.askedAt.toISOString() },
    asked_by: (asked.personId === null ? undefined : members.get(asked.personId)) ?? null,
    ...{ closes_at: asked.closesAt.toISOString(), can_be_canceled: !asked.isDue },
  }
}

const PATH = '/workspaces/{workspace_id}/closure'

export const CLOSURE_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'get_closure',
    method: 'GET',
    path: PATH,
    need: 'workspace.read',
    tokens: 'own mode',
    summary: 'Whether the workspace is being closed, and when',
    tag: 'closure',
    answer: { description: 'How it stands.', body: closure, hasEtag: true },
    run: async (_, { place, on }) => ({ body: await toldOf(on, place.id, await findClosure(on, place.id)) }),
  }),
  inWorkspace({
    operationId: 'ask_closure',
    method: 'POST',
    path: PATH,
    need: 'owners.manage',
    tokens: 'never',
    takesMatch: true,
    whileClosing: true,
    summary: 'Close the workspace, after a grace period',
    description: `From this answer on, calls of all its keys and grants are refused; those that run end as usual and are charged, and keys can read and cancel tasks that run. ${GRACE_DAYS} days later it is closed for good: keys and grants are revoked, and names, e-mail addresses and labels of end users are erased, with the sign-in of members who belong to no other workspace. Charges and payments are kept. Nothing is paid out. Any owner can cancel it before. Every member is told by mail.`,
    tag: 'closure',
    body: z.strictObject({
      name: z
        .string()
        .max(400)
        .meta({ description: 'The name of the workspace, by which you confirm that you mean it.' }),
    }),
    answer: { status: 201, description: 'When it is closed.', body: closure, hasEtag: true },
    codes: ['workspace_closing'],
    async run({ ids, sendMail, siteUrl }, { member, place, body, on, requireMatch }) {
      requireMatch(await toldOf(on, place.id, await findClosure(on, place.id)))
      if (body.name !== place.name)
        throw invalidRequest(
          '"name" is not the name of the workspace. Send its name to confirm that it is to be closed.',
          'name',
        )
      const asked = { workspaceId: place.id, personId: member.personId }
      const made = await askClosure({ pool: on, ids, sendMail, siteUrl }, member.by, asked)
      return { body: await toldOf(on, place.id, made) }
    },
  }),
  inWorkspace({
    operationId: 'cancel_closure',
    method: 'DELETE',
    path: PATH,
    need: 'owners.manage',
    tokens: 'never',
    takesMatch: true,
    whileClosing: true,
    summary: 'Cancel the closure, within the grace period',
    description:
      'From this answer on, its keys and grants are let in again; nothing was erased. Every member is told by mail.',
    tag: 'closure',
    answer: { description: 'How it stands.', body: closure, hasEtag: true },
    codes: ['workspace_closing'],
    async run({ sendMail, siteUrl }, { member, place, on, requireMatch }) {
      requireMatch(await toldOf(on, place.id, await findClosure(on, place.id)))
      await cancelClosure({ pool: on, sendMail, siteUrl }, member.by, place.id)
      return { body: await toldOf(on, place.id, null) }
    },
  }),
]
