import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { type AuditEntry, listAudit } from '../storage/audit.ts'
import { idOf, print, reading, running, withPools } from './command.ts'
import { timeOf } from './time.ts'

export function addAuditCommand(program: Command): void {
  reading(program, 'audit')
    .description('list the audit log, newest first: who changed what, and from where')
    .option('--workspace <id>', 'only this customer account (default: all)')
    .option('--action <name>', 'only this action, such as key.revoked, or key for all actions on keys (default: all)')
    .option(
      '--actor <name>',
      "only this actor, such as 'operator root', or a kind: operator, member, worker, service (default: all)",
    )
    .option('--subject <id>', 'only changes of this key, model, upstream, entry or call (default: all)')
    .option('--since <time>', 'only changes at or after this time, such as 2027-01-31T00:00:00Z (default: all)')
    .option('--until <time>', 'only changes before this time (default: now)')
    .option('--limit <rows>', `maximum number of rows, up to ${LIMIT_MOST}`, '50')
    .option(
      '--after <id>',
      'only rows after this one; the last line of a full page names it (default: from the newest)',
    )
    .option('--json', 'print one JSON object per line (default: text)')
    .action((options: AuditOptions) => running((config) => list(config, options)))
}

const LIMIT_MOST = 1_000

type AuditOptions = {
  readonly workspace?: string
  readonly action?: string
  readonly actor?: string
  readonly subject?: string
  readonly since?: string
  readonly until?: string
  readonly limit: string
  readonly after?: string
  readonly json?: true
}

async function list(config: Config, options: AuditOptions): Promise<void> {
  const { action, actor, subject } = options
  const most = limitOf(options.limit)
  const after = options.after === undefined ? undefined : idOf(options.after)
  const filter = {
    workspaceId: options.workspace === undefined ? undefined : idOf(options.workspace),
    action,
    actor,
    subject,
    since: options.since === undefined ? undefined : timeOf(options.since),
    until: options.until === undefined ? undefined : timeOf(options.until),
  }
  await withPools(config, async ({ rest: pool }) => {
    const rows = await listAudit(pool, filter, { after, most })
    for (const row of rows) print(options.json === true ? JSON.stringify(row) : lineOf(row))
    if (options.json === true) return
    if (rows.length === 0) print('The audit log has no matching rows.')
    if (rows.length === most) print(`There may be more. For the next page, add --after ${rows.at(-1)?.id}`)
  })
}

function limitOf(text: string): number {
  const limit = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > LIMIT_MOST) throw new Error(`--limit must be a whole number from 1 to ${LIMIT_MOST}`)
  return limit
}

function lineOf({ at, actor, action, workspaceId, subject, before, after, origin }: AuditEntry): string {
  const whose = workspaceId === null || workspaceId === subject ? '' : `  of ${workspaceId}`
  const from = Object.entries(origin).map(([name, value]) => `${name} ${value}`)
  const change = `${JSON.stringify(before)} → ${JSON.stringify(after)}`
  const parts = [at.toISOString(), actor, action, `${subject}${whose}`, change, ...from]
  // Customers choose names, and a terminal obeys what it is shown.
  return parts.join('  ').replace(/\p{Cc}/gu, '?')
}
