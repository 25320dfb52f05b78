import type { PlantedBug } from './planted-bug.ts'

const COMMANDS = 'test/house/audit.test.ts'
const KILLS = 'test/house/audit-kills.slow.test.ts'
const LEDGER = 'test/ledger/audit.test.ts'

/** What would let somebody change something without anybody's knowing who did. */
export const bugsOfAudit: readonly PlantedBug[] = [
  {
    id: 'price-without-a-record',
    title: 'a price is set and nobody says in the audit log who did it',
    promise: 'Every change that an operator makes leaves one row in the audit log.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/prices.ts',
        find: "    await record(query, by, { action: 'price.set', subject: operation, ...difference(before, after) })\n",
        replace: '    void [by, difference, record]\n',
      },
    ],
    caughtBy: [{ file: COMMANDS, title: 'tells the change: prices set' }],
  },
  {
    id: 'record-after-the-commit',
    title: 'who turned an upstream off is written down once that has been committed',
    promise: 'A change and its record are both there, or neither is.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/upstreams/configure.ts',
        find: `    await query('update upstreams set enabled = $2, changed_at = clock_timestamp() where id = $1', [id, enabled])
`,
        replace: `    await query('update upstreams set enabled = $2, changed_at = clock_timestamp() where id = $1', [id, enabled])
    await query('commit')
    await query('begin')
`,
      },
    ],
    caughtBy: [{ file: KILLS, title: 'when it is repeated: upstreams off' }],
  },
  {
    id: 'money-before-its-record',
    title: 'a credit is added in a transaction of its own, before the record of who added it',
    promise: 'A change and its record are both there, or neither is.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/ledger/credit.ts',
        find: 'const isNew = await creditWithin(query, credit)',
        replace: 'const isNew = await creditAccount(pool, credit)',
      },
    ],
    caughtBy: [
      { file: LEDGER, title: 'is not moved where it can not be written down' },
      { file: KILLS, title: 'when it is repeated: credit' },
    ],
  },
  {
    id: 'audit-can-be-deleted',
    title: 'PostgreSQL lets rows of the audit log be deleted',
    promise: 'The audit log is append-only.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/storage/migrations/0018_losses_and_times.sql',
        find: 'before update or delete on audit',
        replace: 'before update on audit',
      },
    ],
    caughtBy: [{ file: COMMANDS, title: 'can be added to, and not changed' }],
  },
  {
    id: 'sealed-credential-in-the-audit-log',
    title: 'the audit log has the sealed credential of an upstream',
    promise: 'The audit log has no secret, no hash and nothing sealed.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/upstreams/configure.ts',
        find: 'kind, credential is not null as "hasCredential", segments, priority, weight,\n  requests_per_minute',
        replace: 'kind, credential::text as "hasCredential", segments, priority, weight,\n  requests_per_minute',
      },
    ],
    caughtBy: [{ file: COMMANDS, title: 'has no secret in any form' }],
  },
  {
    id: 'key-as-a-name-in-the-audit-log',
    title: 'the audit log has whatever people name things by, secrets included',
    promise: 'The audit log has no secret, no hash and nothing sealed.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/storage/audit.ts',
        find: 'return scrub(text).toWellFormed()',
        replace: 'return (text || scrub(text)).toWellFormed()',
      },
    ],
    caughtBy: [
      { file: COMMANDS, title: 'has no secret in any form' },
      { file: 'test/acceptance/links/audit.test.ts', title: 'no key that stands where it should not' },
    ],
  },
  {
    id: 'command-that-says-nothing',
    title: 'a command that writes does not declare that it does',
    promise: 'A new command that writes without a record is noticed.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/cli/identity.ts',
        find: "writing(keys, 'revoke [key]')",
        replace: "keys.command('revoke [key]')",
      },
    ],
    caughtBy: [{ file: COMMANDS, title: 'says whether it reads or writes' }],
  },
  {
    id: 'a-row-for-each-call',
    title: 'a worker that voids calls after an outage writes a row into the audit log for each of them',
    promise: 'The audit log does not grow with traffic.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/orphans.ts',
        find: 'Map.groupBy(voided, (call) => call.accountId)',
        replace: 'voided.map((call) => [call.accountId, [call]] as const)',
      },
    ],
    caughtBy: [{ file: LEDGER, title: 'never one for each call' }],
  },
]
