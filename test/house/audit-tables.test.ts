import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from '../../harness/root.ts'
import { sourcesIn, TABLES } from '../architecture.ts'

const SOURCES = path.join(ROOT, 'server/src')

/** What people change: whoever writes one of these says in the audit log who did it. */
const RECORDED = [
  ...['workspaces', 'members', 'accounts', 'allowances', 'budgets', 'credentials', 'api_keys', 'plans'],
  ...['grants', 'access_tokens', 'approvals', 'quota_requests', 'closures', 'exports'],
  ...['price_versions', 'account_prices', 'models', 'model_prices', 'model_routes', 'upstreams'],
  'switched_off',
  ...['link_sessions', 'loss_releases'],
  ...['people', 'person_identities', 'recovery_codes', 'invitations'],
]

/** Files that write one of those, and who has the record. */
const RECORDED_ELSEWHERE: Readonly<Record<string, string>> = {
  'calls/losses.ts loss_releases': 'operate/losses.ts, in the same transaction',
  'calls/fast-begin.ts accounts': 'the ledger: what calls hold, use and are charged',
  'calls/fast-begin.ts credentials': 'the ledger: what calls hold, use and are charged',
  'calls/fast-end.ts accounts': 'the ledger: what calls hold, use and are charged',
  'calls/fast-end.ts credentials': 'the ledger: what calls hold, use and are charged',
  'budgets/budgets.ts allowances': 'keys.ts and grants.ts, in the same transaction',
  'grants/locked-grant.ts grants': 'grants.ts and mandates.ts, in the same transaction',
  'workspaces/stops.ts accounts': 'closures.ts and suspensions.ts, in the same transaction',
  'people/forget.ts people': 'nobody: they never verified their address, and nothing was theirs',
  'people/forget.ts invitations': 'nobody: they ran out',
  'people/forget.ts exports': 'nobody: they ran out',
  'people/sign-up.ts people': 'welcome.ts, in the transaction that verifies the address',
  'people/recovery-codes.ts recovery_codes': 'second-factor.ts, in the same transaction',
  'people/workspace-lock.ts invitations': 'members.ts, in the transaction that removes or demotes who invited',
}

/** What has no row in the audit log when it is written, and why: see decision 0027. */
const NOT_RECORDED: Readonly<Record<string, string>> = {
  ...named('the ledger and the task are the record', [
    'holds',
    'charges',
    'entries',
    'promotions',
    'claims',
    'tasks',
    'losses',
    'entry_notes',
  ]),
  ...named('counted with the calls', [
    'allowance_periods',
    'kept_periods',
    'usage_combined',
    'usage_kept',
    'usage_sums',
    'usage_tail',
    'usage_totals',
    'windows',
    'group_windows',
    'refusals',
    'refused_calls',
    'request_records',
  ]),
  ...named('upkeep', [
    'owners',
    'process_reports',
    'change_log',
    'dropped_allowances',
    'dropped_charges',
    'dropped_days',
  ]),
  ...named('what the program itself serves, said by each process', ['contracts', 'sales_snapshots']),
  ...named('leases of a quota', ['upstream_quotas', 'upstream_polls']),
  ...named('nothing of an account has changed yet', ['link_attempts']),
  ...named('messages are written with a change that has its row, and delivered', ['outbox']),
  ...named('of a browser: who signs in changes nothing; ends of all sessions are recorded with their reason', [
    'browser_sessions',
    'remembered_browsers',
  ]),
  ...named('part of a sign-up or a reset, which has its row when it is done', ['mailed_links', 'sign_up_credits']),
  ...named('written with a change that has its row', ['account_writes']),
  ...named('counted attempts', ['door_attempts']),
  ...named('what people were told, with the letter', ['budget_notices', 'balance_notices']),
  ...named('whom calls are made for, as their callers say', ['end_users', 'end_user_counts']),
  ...named('strangers say what they like of themselves; what a person allows has its row, as a grant', [
    'oauth_clients',
    'oauth_documents',
    'oauth_states',
  ]),
  ...named('upkeep', ['signing_keys']),
  ...named('its own record', ['audit', 'schema_migrations']),
}

function named(why: string, tables: readonly string[]): Record<string, string> {
  return Object.fromEntries(tables.map((table) => [table, why]))
}

const WRITES = /\b(?:insert\s+into|delete\s+from|update)\s+(?:only\s+)?([a-z_]+)\b/g

/** `file table` of each table that a file writes in a statement of its own. */
function writesIn(file: string, tables: ReadonlySet<string>): readonly string[] {
  const text = readFileSync(path.join(SOURCES, file), 'utf8')
  const found = [...text.matchAll(WRITES)].map(([, table = '']) => table).filter((table) => tables.has(table))
  return [...new Set(found)].map((table) => `${file} ${table}`)
}

describe('the tables', () => {
  it('are each said to be recorded when somebody changes them, or why not; and whoever writes the former records it', () => {
    const tables = new Set(Object.keys(TABLES))
    const known = [...RECORDED, ...Object.keys(NOT_RECORDED)]
    assert.deepEqual(
      [...tables].filter((table) => !known.includes(table)),
      [],
      'say of a new table what it is',
    )

    const writes = sourcesIn(SOURCES).flatMap((file) => writesIn(file, tables))
    const ofPeople = writes.filter((one) => RECORDED.includes(one.split(' ')[1] ?? ''))
    assert.ok(ofPeople.length > 12, `${ofPeople.length} were found`)
    const silent = ofPeople.filter((one) => !(one in RECORDED_ELSEWHERE) && !records(one.split(' ')[0] ?? ''))
    assert.deepEqual(silent, [], 'who writes these calls record() of storage/audit.ts')
  })
})

function records(file: string): boolean {
  const text = readFileSync(path.join(SOURCES, file), 'utf8')
  return /\bawait record\(query, /.test(text) || /\breturn record\(query, /.test(text)
}
