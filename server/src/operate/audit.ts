import { z } from 'zod'
import { type Facts, listAudit } from '../storage/audit.ts'
import { action, field } from './action.ts'
import { idField, idOf, timeOf } from './fields.ts'

const LIMIT_MOST = 1_000

function limitOf(text: string): number {
  const limit = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > LIMIT_MOST) throw new Error(`must be a whole number from 1 to ${LIMIT_MOST}`)
  return limit
}

const time = (description: string) => field('time', description, timeOf).optional()
const text = (shown: string, description: string) => field(shown, description, String).optional()

const list = action({
  name: 'audit',
  summary: 'list the audit log, newest first: who changed what, and from where',
  effect: 'reads',
  positional: [],
  input: z.object({
    workspace: idField('id', 'only this customer account (default: all)').optional(),
    action: text('name', 'only this action, such as key.revoked, or key for all actions on keys (default: all)'),
    actor: text(
      'name',
      "only this actor, such as 'operator root', or a kind: operator, member, worker, service (default: all)",
    ),
    subject: text('id', 'only changes of this key, model, upstream, entry or call (default: all)'),
    since: time('only changes at or after this time, such as 2027-01-31T00:00:00Z (default: all)'),
    until: time('only changes before this time (default: now)'),
    limit: field('rows', `maximum number of rows, up to ${LIMIT_MOST} (default: 50)`, limitOf).default(50),
    after: field(
      'id',
      'only rows after this one; the last line of a full page names it (default: from the newest)',
      (id) => idOf(id),
    ).optional(),
  }),
  async run({ pool }, { workspace, limit, after, ...filter }) {
    const rows = await listAudit(pool, { workspaceId: workspace, ...filter }, { after, most: limit })
    return rows.map((row) => ({ ...row, before: factsOf(row.before), after: factsOf(row.after) }))
  },
  lines: (rows, { limit }) => [
    ...rows.map(({ at, actor, action: done, workspaceId, subject, before, after, origin }) => {
      const whose = workspaceId === null || workspaceId === subject ? '' : `  of ${workspaceId}`
      const from = Object.entries(origin).map(([name, value]) => `${name} ${value}`)
      const change = `${textOf(before)} → ${textOf(after)}`
      return [at.toISOString(), actor, done, `${subject}${whose}`, change, ...from].join('  ')
    }),
    ...(rows.length === 0 ? ['The audit log has no matching rows.'] : []),
    ...(rows.length === limit ? [`There may be more. For the next page, add --after ${rows.at(-1)?.id}`] : []),
  ],
})

type Change = ReadonlyMap<string, unknown> | null

/** Their names are data. */
function factsOf(facts: Facts | null): Change {
  return facts === null ? null : new Map(Object.entries(facts))
}

function textOf(facts: Change): string {
  return JSON.stringify(facts === null ? null : Object.fromEntries(facts))
}

export const audit = [list]
