import { writeFileSync } from 'node:fs'
import type pg from 'pg'
import { hashOf, makeKey } from '../../server/src/identity/key-format.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'

const ids = createIds({ clock: systemClock })
const AT_ONCE = 5_000
const PLENTY = 10n ** 15n

/**
 * Customers, each with a workspace, money, a key and a monthly budget, and limits that nobody meets. Made in bulk, as rows:
 * there may be a million of them. Their secrets are added to the file, a line each.
 */
export async function makeCallers(pool: pg.Pool, count: number, secretsFile: string): Promise<void> {
  for (let done = 0; done < count; done += AT_ONCE) await makeSome(pool, Math.min(AT_ONCE, count - done), secretsFile)
  await pool.query('analyze')
}

async function makeSome(pool: pg.Pool, count: number, secretsFile: string): Promise<void> {
  const made = Array.from({ length: count }, () => {
    const keyId = ids.next()
    return {
      workspace: ids.next(),
      live: ids.next(),
      test: ids.next(),
      allowance: ids.next(),
      keyId,
      secret: makeKey(keyId, 'live', 0),
    }
  })
  const column = (name: 'workspace' | 'live' | 'test' | 'allowance' | 'keyId') => made.map((one) => one[name])
  await pool.query(
    `with given as (
       select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::bytea[])
         given (workspace, live, test, allowance, key, hash)
     ), live as (
       insert into accounts (id, mode, credited, paid) select live, 'live', ${PLENTY}, ${PLENTY} from given
     ), test as (
       insert into accounts (id, mode) select test, 'test' from given
     ), workspace as (
       insert into workspaces (id, name, shard, live_account_id, test_account_id,
         tier_granted, requests_per_minute, tokens_per_minute, concurrency)
       select workspace, 'bench', 0, live, test, 'enterprise', 2000000000, 2000000000000, 100000 from given
     ), allowance as (
       insert into allowances (id, account_id, period, amount) select allowance, live, 'month', ${PLENTY} from given
     ), credential as (
       insert into credentials (id, account_id) select key, live from given
     )
     insert into api_keys (id, workspace_id, name, hash, allowance_id) select key, workspace, 'bench', hash, allowance from given`,
    [
      column('workspace'),
      column('live'),
      column('test'),
      column('allowance'),
      column('keyId'),
      made.map(({ secret }) => `\\x${hashOf(secret).toString('hex')}`),
    ],
  )
  writeFileSync(secretsFile, made.map(({ secret }) => `${secret.reveal()}\n`).join(''), { flag: 'a' })
}
