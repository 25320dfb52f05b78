import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { commitNamed } from '../../harness/commit.ts'
import { startGateways } from '../../harness/gateways.ts'
import { temporaryFolder } from '../../harness/postgres.ts'
import { count, isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import { startSandbox } from '../../harness/sandbox.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { Random } from '../../sandbox/src/random.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { MIGRATIONS_FOLDER } from '../../server/src/storage/migrations.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { askAnybody, CALLS, type Customer, makeCustomer, makeKey } from '../acceptance/installation.ts'
import { connect, pg } from '../ledger/world.ts'
import { countedOf, set } from './setting.ts'

/** Processes of the release before, from its own sources, beside new ones on one database that is migrated while they take calls. */
const CHARGES = count({ full: 1_000_000, reduced: 10_000 })
const DAYS_OF_CHARGES = count({ full: 1_000, reduced: 10 })
const CALLERS = 6
/** So many calls are answered before the next thing happens. */
const CALLS_EACH = count({ full: 2_000, reduced: 30 })
const CALLS_AT_ONCE = count({ full: 600, reduced: 90 })
const ROUNDS = count({ full: 5, reduced: 1 })
/** What a call of tag_detail costs, and holds. */
const PRICE = 1_450_000n
const FIRST_SINCE = 'server/src/storage/migrations/0027_attribution.sql'

const git = (...words: string[]) => execFileSync('git', words, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }).trim()

/** In a proof, the release; in the gate the commit before there was attribution, which is nearer. None where the history is not there. */
function commitBefore(): string | undefined {
  if (isFullProof) return commitNamed('0.1.0')
  const [added] = git('log', '--format=%H', '--diff-filter=A', '--', FIRST_SINCE).split('\n')
  if (added === undefined || added === '') return undefined
  return git('rev-list', '--parents', '--max-count=1', added).split(' ')[1]
}

/** 0.1.0 refuses settings that it does not know. */
const UNKNOWN_TO_THE_RELEASE = [
  ...['LISTEN_SITE', 'LISTEN_AGENT', 'LOSS_ACCOUNT_HOUR_USD', 'LOSS_ACCOUNT_DAY_USD'],
  ...['LOSS_ROUTE_HOUR_USD', 'LOSS_ROUTE_DAY_USD'],
]

function unknownBefore(): Readonly<Record<string, undefined>> {
  return isFullProof ? Object.fromEntries(UNKNOWN_TO_THE_RELEASE.map((name) => [`FAREBOX_${name}`, undefined])) : {}
}

/** A clone that borrows our objects and packages, removed when the file is done. */
function checkOut(commit: string): { readonly folder: string; readonly program: string } {
  const folder = temporaryFolder('farebox-before-')
  after(() => rmSync(folder, { recursive: true, force: true }))
  git('clone', '--quiet', '--shared', '--no-checkout', path.resolve(ROOT, git('rev-parse', '--git-common-dir')), folder)
  git('-C', folder, 'checkout', '--quiet', '--detach', commit)
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
  return { folder, program: path.relative(ROOT, path.join(folder, 'server/src/main.ts')) }
}

/** What the release before does itself to have upstreams and a customer on its database. */
const SEED_AS_BEFORE = `
import { bindSandbox } from './harness/seed.ts'
import { Secret } from './server/src/kernel/secret.ts'
import { makeCustomer } from './test/acceptance/installation.ts'
import { connect } from './test/ledger/world.ts'

const [url = '', masterKey = '', sandboxUrl = ''] = process.argv.slice(2)
const { pools } = connect(url)
await bindSandbox({ pool: pools.rest, masterKey: new Secret(masterKey), sandboxUrl })
console.log(JSON.stringify(await makeCustomer(pools.rest, { money: 10n ** 15n })))
await pools.close()
`

function seedAsBefore(folder: string, ...words: readonly string[]): Customer {
  const file = path.join(folder, 'seed-as-before.ts')
  writeFileSync(file, SEED_AS_BEFORE)
  const told = execFileSync(process.execPath, [file, ...words], { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
  return JSON.parse(told.trim().split('\n').at(-1) ?? '')
}

/** Charges of the days before today, as its END has left them. */
async function chargeInBulk(url: string, { accountId, keyId }: Customer): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('select make_charge_partition(current_date - day) from generate_series(1, $1::integer) day', [
    DAYS_OF_CHARGES + 1,
  ])
  await client.query(
    `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
     select (left(first_id_at(at)::text, 14) || '7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, $2, 'probe', 'posted', 2, 2, 0, 0, 2, 0, true,
       false, 0, 0, 0, 0, '{}', at, at
     from generate_series(1, $3::integer) n
     cross join lateral (select date_trunc('day', now(), 'UTC') - (1 + n % $4::integer) * interval '1 day' as at) one`,
    [accountId, keyId, CHARGES, DAYS_OF_CHARGES],
  )
  await client.query('update accounts set charged = charged + 2 * $2::bigint where id = $1', [accountId, CHARGES])
  await client.query(
    `insert into usage_hours select credential_id, date_trunc('hour', ended_at, 'UTC'), account_id, count(*), 0, 0, 0, 0, 0, sum(value), sum(amount)
     from charges where account_id = $1 group by 1, 2, 3`,
    [accountId],
  )
  await client.end()
}

/** Callers who ask one process after the other, all the time. */
function startLoad({ secret }: Customer, urls: readonly string[]) {
  const asked = [...urls]
  const statuses: number[] = []
  let [isOver, turn] = [false, 0]
  const call = async () => {
    while (!isOver) {
      const { path: where } = CALLS.tag_detail?.(`sandbox:delay=${random.between(0, 20)}`) ?? assert.fail()
      turn += 1
      // Whoever gets no answer at all is counted too.
      const { status } = await askAnybody(asked[turn % asked.length] ?? '', secret, where).catch(() => ({ status: 0 }))
      statuses.push(status)
    }
  }
  const calling = Promise.all(Array.from({ length: CALLERS }, call))
  const some = (calls: number) => {
    const most = statuses.length + calls
    return until(() => statuses.length >= most, 3 * PATIENCE_MS, `${calls} more calls`)
  }
  const stop = async () => {
    isOver = true
    await calling
    return statuses
  }
  return { asked, some, stop }
}

/** The schema as the release before has it. */
async function toRelease(url: string, checkedOut: string): Promise<void> {
  const folder = temporaryFolder('farebox-migrations-')
  after(() => rmSync(folder, { recursive: true, force: true }))
  for (const file of readdirSync(path.join(checkedOut, path.dirname(FIRST_SINCE))))
    cpSync(path.join(MIGRATIONS_FOLDER, file), path.join(folder, file))
  const client = new pg.Client(url)
  await client.connect()
  await client.query('drop schema public cascade; create schema public')
  await client.end()
  await migrate({ url: new Secret(url), log: silentLog, folder })
}

const commit = commitBefore()
const random = new Random(seed)

describe('processes of the release before', {
  skip: commit === undefined && 'the history of the project is not here',
}, () => {
  it('never pass a budget together with new ones, and both report what the ledger has; no other budget is set beside them', async () => {
    const { folder, program } = checkOut(commit ?? '')
    const database = await freshDatabase()
    const masterKey = makeMasterKey()
    // They start on the database of their release, and go on while it is migrated, and after.
    await toRelease(database.url, folder)
    const sandbox = await startSandbox()
    const first = seedAsBefore(folder, database.url, masterKey.reveal(), sandbox.url)
    await chargeInBulk(database.url, first)
    const env = { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(), FAREBOX_LOG_LEVEL: 'error' }
    // They did not know the word `none` for proxies.
    const old = { ...env, ...unknownBefore(), FAREBOX_HTTP_TRUSTED_PROXIES: undefined }
    const olds = await startGateways(2, { databaseUrl: database.url, env: old, program })
    const load = startLoad(first, [...olds.map(({ url }) => url)])
    await load.some(CALLS_EACH)
    const startedAtMs = performance.now()
    await migrate({ url: new Secret(database.url), log: silentLog })
    const migratedMs = Math.round(performance.now() - startedAtMs)
    await load.some(CALLS_EACH)
    const news = await startGateways(2, { databaseUrl: database.url, env })
    const { pools } = connect(database.url)
    const pool = pools.rest
    const urls = [...news, ...olds].map(({ url }) => url)
    load.asked.push(...news.map(({ url }) => url))
    await load.some(CALLS_EACH)
    const statuses = await load.stop()
    assert.deepEqual(new Set(statuses), new Set([200]), 'nobody notices the migration')
    for (const url of urls) await untilReported(url, first, statuses.length)
    assert.deepEqual(await verifyLedger(pool), [])
    recordProof('old-processes', 'a database of the release before is migrated while calls are made', {
      ...{ commit, charges: CHARGES, days: DAYS_OF_CHARGES, callers: CALLERS, calls: statuses.length, errors: 0 },
      migrated_ms: migratedMs,
    })
    let [begun, refused] = [0, 0]
    try {
      for (let round = 0; round < ROUNDS; round += 1) {
        const amount = PRICE * 20n + BigInt(random.between(0, Number(PRICE) - 1))
        const customer = await makeCustomer(pool, { key: { budget: { period: 'total', amount: nanos(amount) } } })
        const other = await makeKey(pool, customer.workspaceId)
        const allowanceId = await allowanceOf(customer)
        let isOver = false
        const watching = (async () => {
          while (!isOver) assert.ok((await countedOf(pool, allowanceId)) <= amount)
        })()
        const answers = await Promise.all(
          Array.from({ length: CALLS_AT_ONCE }, async (_, at) => {
            const { path: where } = CALLS.tag_detail?.(`sandbox:delay=${random.between(0, 200)}`) ?? assert.fail()
            const secret = at % 3 === 0 ? other.secret : customer.secret
            return (await askAnybody(urls[at % urls.length] ?? '', secret, where)).status
          }),
        )
        isOver = true
        await watching
        begun += answers.filter((status) => status === 200).length
        refused += answers.filter((status) => status === 402).length
        assert.deepEqual(new Set(answers), new Set([200, 402]))
        assert.equal(await countedOf(pool, allowanceId), PRICE * 20n)
        for (const url of urls) await untilReported(url, customer, 20)
        for (const url of urls) await untilReported(url, other, Math.ceil(CALLS_AT_ONCE / 3))
        assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
      }
      const customer = await makeCustomer(pool)
      const wanted = { kind: 'workspace', amount: 10n * PRICE } as const
      await assert.rejects(set(pool, customer, wanted), /A process of the release before is still running/)
      await Promise.all(olds.map((old) => old.stop()))
      const isSet = () =>
        set(pool, customer, wanted).then(
          () => true,
          () => false,
        )
      await until(isSet, PATIENCE_MS, 'that the budget is set once they are gone')
      assert.deepEqual(await verifyLedger(pool), [])
    } finally {
      await Promise.all([...olds, ...news].map((gateway) => gateway.stop()))
      await sandbox.stop()
      await pools.close()
    }
    assert.ok(begun > 0 && refused > 0)
    recordProof('old-processes', 'two processes of the release before beside two new ones', {
      ...{ commit, calls: CALLS_AT_ONCE * ROUNDS, begun, refused, above: 0, wrong_reports: 0 },
    })

    async function allowanceOf({ keyId }: Customer): Promise<Id> {
      const { rows } = await pool.query<{ id: Id }>('select allowance_id as id from api_keys where id = $1', [keyId])
      return rows[0]?.id ?? assert.fail()
    }
  })
})

/** A process of before has the calls of new ones once they are added up. */
async function untilReported(url: string, { secret }: Pick<Customer, 'secret'>, calls: number): Promise<void> {
  const isReported = async () => {
    const { json } = await askAnybody(url, secret, `/v1/usage?start_time=${Math.floor(Date.now() / 1_000) - 7_200}`)
    const { requests, charged_micros_usd: charged } = Object(json.totals)
    assert.ok(requests <= calls, `${requests} of ${calls}`)
    return requests === calls && charged === calls * Number(PRICE / 1_000n)
  }
  await until(isReported, PATIENCE_MS, `that ${calls} calls are reported`)
}
