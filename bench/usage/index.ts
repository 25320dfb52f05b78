import type pg from 'pg'
import { startPostgres } from '../../harness/postgres.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { type Benchmark, median, metric } from '../bench.ts'
import { treeCpuMicroseconds } from '../cpu.ts'

const FULL = { rounds: 5, calls: 20_000 }
const REDUCED = { rounds: 1, calls: 1_000 }
const ACCOUNTS = 20
/** So many end users and values of a tag an account has; of `run`, every call has its own. */
const NAMES = 100

/** What a call says of whose it is. */
const KINDS = {
  plain: { endUser: false, tags: 0 },
  two_tags: { endUser: true, tags: 2 },
  eight_tags: { endUser: true, tags: 8 },
  eight_tags_one_a_run: { endUser: true, tags: 8, isRun: true },
} as const
type Kind = keyof typeof KINDS

/** CPU microseconds of PostgreSQL to add up the usage of a call, behind it, by what it says of whose it is. */
export const run: Benchmark = async (progress, { reduced, rounds: wanted }) => {
  const { rounds, calls } = { ...(reduced ? REDUCED : FULL), ...(wanted && { rounds: wanted }) }
  const postgres = await startPostgres()
  await migrate({ url: new Secret(postgres.url()), log: silentLog })
  const pools = createPools({ url: new Secret(postgres.url()), log: silentLog })
  const names = Object.keys(KINDS) as Kind[]
  const found = new Map<Kind, number[]>(names.map((kind) => [kind, []]))
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const kind of names) {
        await note(pools.rest, kind, calls, round)
        const before = treeCpuMicroseconds(postgres.pid())
        await addUpUsage(pools.rest)
        found.get(kind)?.push((treeCpuMicroseconds(postgres.pid()) - before) / calls)
      }
      progress(
        `round ${round + 1} of ${rounds}: ${names.map((kind) => found.get(kind)?.at(-1)?.toFixed(1)).join(', ')}`,
      )
    }
  } finally {
    await pools.close()
    await postgres.remove()
  }
  return names.map((kind) => metric(`add_up_${kind}`, median(found.get(kind) ?? []), 'us'))
}

/** Each column by itself, so that all combine with all: of so many, one by chance, the same each time. */
function draw(salt: string, most: string): string {
  return `((hashint8extended(n, hashtext($7 || ${salt})) & 9223372036854775807) % ${most}::bigint)`
}

/** Usage as END notes it, a row for each call, of the hour that is running. */
async function note(pool: pg.Pool, kind: Kind, calls: number, round: number): Promise<void> {
  const { endUser, tags, ...more } = KINDS[kind]
  await pool.query(
    `insert into usage_tail (account_id, credential_id, at, operation, model, end_user, end_user_label, tags,
       requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
     select md5('account ' || account)::uuid, md5('key ' || account)::uuid, now(), 'chat_completions', 'model ' || ${draw("'model'", '5')},
       case when $3 then md5('person ' || account || ${draw("'person'", '$4')})::uuid end, case when $3 then 'person' end,
       case when $5 > 0 then array(select 't' || tag || '=' || case when tag = 1 and $6 then $7 || '-' || n else ${draw("'tag' || tag", '$4')}::text end
         from generate_series(1, $5::integer) tag) end,
       1, 0, 100, 100, 0, 0, 700, 700
     from generate_series(1, $1::integer) n cross join lateral (select ${draw("'account'", '$2')}) one (account)`,
    [calls, ACCOUNTS, endUser, NAMES, tags, 'isRun' in more, `${kind} ${round}`],
  )
}
