import { z } from 'zod'
import { timeForm } from '../../api/forms.ts'
import { PAGE, pageFrom, pageOf } from '../../api/pages.ts'
import type { Id } from '../../kernel/ids.ts'
import { memberIdsOf } from '../../people/members.ts'
import { type AuditEntry, listAudit } from '../../storage/audit.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const facts = z.record(z.string(), z.unknown()).nullable()
const entry = z.strictObject({
  id: z.string(),
  at: z.iso.datetime(),
  actor: z.string().meta({ description: 'member <id>, operator, worker or service.' }),
  member_id: z
    .string()
    .nullable()
    .meta({ description: 'Of the member who changed it; null for others, and for who is no member any more.' }),
  grant_id: z.string().nullable().meta({ description: 'Through which grant: a client changed it for the member.' }),
  action: z.string(),
  subject: z.string().meta({ description: 'The id or the name of what was changed.' }),
  before: facts.meta({ description: 'Null for what was not there.' }),
  after: facts.meta({ description: 'Null for what is no more.' }),
  address: z.string().nullable().meta({ description: 'From where a member changed it.' }),
})

/** Who of the operator's people it was, and on which machine, is theirs alone. */
export function toldEntry(row: AuditEntry, members: ReadonlyMap<Id, Id>): z.output<typeof entry> {
  const { id, at, actor, action, subject, before, after, origin } = row
  const [kind = '', who = ''] = actor.split(' ')
  const isMember = kind === 'member'
  return {
    ...{ id, at: at.toISOString(), actor: isMember ? actor : kind, action, subject, before, after },
    member_id: isMember ? (members.get(who) ?? null) : null,
    grant_id: isMember ? (origin.grant ?? null) : null,
    address: isMember ? (origin.address ?? null) : null,
  }
}

const text = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[^\p{Cc}]*$/u, 'must not have control characters')
  .optional()

export const AUDIT_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_audit',
    method: 'GET',
    path: '/workspaces/{workspace_id}/audit',
    need: 'workspace.manage',
    tokens: 'own mode',
    summary: 'Who changed what, the newest first',
    tag: 'audit',
    query: z.strictObject({
      ...PAGE,
      action: text.meta({ description: 'Such as key.revoked, or key for all of keys.' }),
      subject: text.meta({ description: 'Changes of this alone, by its id.' }),
      start: timeForm.optional().meta({ description: 'At this time or later.' }),
      end: timeForm.optional().meta({ description: 'Before this time.' }),
    }),
    answer: { description: 'A page of the audit log.', body: pageOf(entry) },
    async run({ pool }, { place, query: { limit, cursor, action, subject, start, end } }) {
      const filter = { workspaceId: place.id, action, subject, since: start, until: end }
      const rows = await listAudit(pool, filter, { after: cursor, most: limit + 1 })
      const members = await memberIdsOf(pool, place.id)
      return { body: pageFrom(rows, limit, (row) => toldEntry(row, members)) }
    },
  }),
]
