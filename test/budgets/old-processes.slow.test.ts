import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../harness/gateways.ts'
import { temporaryFolder } from '../../harness/postgres.ts'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
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
import {
  askAnybody,
  CALLS,
  type Customer,
  makeCustomer,
  makeKey,
  startInstallation,
} from '../acceptance/installation.ts'
import { pg } from '../ledger/world.ts'
import { countedOf, set } from './setting.ts'

/** Processes of the release before, from its own sources, beside new ones on one migrated database. */
const CALLS_AT_ONCE = count({ full: 600, reduced: 90 })
const ROUNDS = count({ full: 5, reduced: 1 })
/** What a call of tag_detail costs, and holds. */
const PRICE = 1_450_000n
const FIRST_SINCE = 'server/src/storage/migrations/0027_attribution.sql'

const git = (...words: string[]) => execFileSync('git', words, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }).trim()

/** The commit before there was attribution; none where the history is not there. */
function commitBefore(): string | undefined {
  const [added] = git('log', '--format=%H', '--diff-filter=A', '--', FIRST_SINCE).split('\n')
  if (added === undefined || added === '') return undefined
  return git('rev-list', '--parents', '--max-count=1', added).split(' ')[1]
}

/** A clone that borrows our objects and packages, removed when the file is done. */
function checkOut(commit: string): string {
  const folder = temporaryFolder('farebox-before-')
  after(() => rmSync(folder, { recursive: true, force: true }))
  git('clone', '--quiet', '--shared', '--no-checkout', path.resolve(ROOT, git('rev-parse', '--git-common-dir')), folder)
  git('-C', folder, 'checkout', '--quiet', '--detach', commit)
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
  return path.relative(ROOT, path.join(folder, 'server/src/main.ts'))
}

/** The schema as the release before has it. */
async function toRelease(url: string): Promise<void> {
  const folder = temporaryFolder('farebox-migrations-')
  after(() => rmSync(folder, { recursive: true, force: true }))
  for (const file of readdirSync(MIGRATIONS_FOLDER))
    if (file < path.basename(FIRST_SINCE)) cpSync(path.join(MIGRATIONS_FOLDER, file), path.join(folder, file))
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
    const program = checkOut(commit ?? '')
    const database = await freshDatabase()
    const masterKey = makeMasterKey()
    // They start on the database of their release, and go on when it is migrated.
    await toRelease(database.url)
    const env = { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(), FAREBOX_LOG_LEVEL: 'error' }
    const startOld = () => startGateway({ databaseUrl: database.url, env, program })
    const olds = [await startOld(), await startOld()]
    await migrate({ url: new Secret(database.url), log: silentLog })
    const installation = await startInstallation(database.url, { processes: 2, env, masterKey })
    const { pool } = installation
    const urls = [...installation.gateways, ...olds].map(({ url }) => url)
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
        const statuses = await Promise.all(
          Array.from({ length: CALLS_AT_ONCE }, async (_, at) => {
            const { path: where } = CALLS.tag_detail?.(`sandbox:delay=${random.between(0, 200)}`) ?? assert.fail()
            const secret = at % 3 === 0 ? other.secret : customer.secret
            return (await askAnybody(urls[at % urls.length] ?? '', secret, where)).status
          }),
        )
        isOver = true
        await watching
        begun += statuses.filter((status) => status === 200).length
        refused += statuses.filter((status) => status === 402).length
        assert.deepEqual(new Set(statuses), new Set([200, 402]))
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
      await Promise.all(olds.map((old) => old.stop()))
      await installation.stop()
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
