import assert from 'node:assert/strict'
import { userInfo } from 'node:os'
import { after, describe, it } from 'node:test'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { startShell } from '../house/command-shell.ts'
import { ask, type Customer, call, codeOf, ids, makeCustomer, startInstallation, type Told } from './installation.ts'
import { hear, question, streamed } from './models/streams.ts'

/** A tenth of a dollar an hour for an account at a route, and three for the route. */
const CEILINGS = {
  FAREBOX_LOSS_ACCOUNT_HOUR_USD: '0.10',
  FAREBOX_LOSS_ACCOUNT_DAY_USD: '0.40',
  FAREBOX_LOSS_ROUTE_HOUR_USD: '0.30',
  FAREBOX_LOSS_ROUTE_DAY_USD: '1.20',
}
const database = await freshDatabase()
const installation = await startInstallation(database.url, { env: CEILINGS })
const { url, pool, sandbox, masterKey, gateways } = installation
after(installation.stop)
const { farebox, said } = startShell({ ...process.env, FAREBOX_DATABASE_URL: database.url, ...CEILINGS })

const MONEY = 1_000_000_000_000n
const RERANK = 'rerank@rerank:test'
/** The upstream claims a million tokens, of which some ten were held for: 5 cents less than nothing. */
const lose = ({ secret }: Customer) => call(url, secret, 'rerank', 'sandbox:tokens=1000000')
const askHonestly = ({ secret }: Customer) => call(url, secret, 'rerank', 'sandbox:tokens=1')

async function untilCode(work: () => Promise<Told>, code: unknown): Promise<Told> {
  let told = await work()
  await until(
    async () => {
      told = await work()
      return codeOf(told) === code
    },
    PATIENCE_MS,
    `the answer ${code}`,
  )
  return told
}

async function lossesOf({
  accountId,
}: Customer): Promise<readonly { route: string; nanos: bigint; claim: bigint | null }[]> {
  const { rows } = await pool.query('select route, nanos, claim from losses where account_id = $1 order by at', [
    accountId,
  ])
  return rows
}

async function overrunOf({ accountId }: Customer): Promise<bigint> {
  const { rows } = await pool.query(
    'select coalesce(sum(overrun), 0)::bigint as sum from charges where account_id = $1',
    [accountId],
  )
  return rows[0]?.sum ?? 0n
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${gateways[0]?.adminUrl}/metrics`)).text()
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1] ?? Number.NaN,
  )
}

describe('an account whose calls cost more than their holds', () => {
  it('is refused at that route alone once its ceiling is reached, and nobody else is; one command lets it through', async () => {
    const [hostile, other] = [await makeCustomer(pool, { money: MONEY }), await makeCustomer(pool, { money: MONEY })]
    for (let calls = 0; calls < 3; calls += 1) assert.equal((await lose(hostile)).status, 200)
    const refused = await untilCode(() => askHonestly(hostile), 'loss_ceiling_account')
    assert.equal(refused.status, 403)
    assert.match(refused.text, /The limit for rerank is 0\.1 USD within 60 minutes\./)
    assert.equal(refused.costUsd, null, 'nothing was held or charged')
    assert.equal((await askHonestly(other)).status, 200)
    assert.equal((await call(url, hostile.secret, 'tag_detail')).status, 200)
    assert.equal(await metric('farebox_loss_ceilings_reached{scope="account",mode="test"}'), 1)
    assert.ok((await metric('farebox_loss_usd_total{kind="reported"}')) > 0.14)

    const lines = (await said('losses')).split('\n')
    assert.ok(lines.some((line) => line.startsWith(`${RERANK}  `)))
    const own = lines.find((line) => line.includes(hostile.accountId)) ?? ''
    assert.match(
      own,
      /0\.149\d+ of 0\.100000000 USD in the last hour .*REFUSED since 20\d\d-\S+Z: farebox losses release/,
    )
    const command = own.slice(own.indexOf('losses release')).split(' ')
    assert.deepEqual(command, ['losses', 'release', '--route', RERANK, '--account', hostile.accountId])
    assert.match(await said(...command), /no longer count/)
    await untilCode(() => askHonestly(hostile), undefined)
    const { rows } = await pool.query(
      'select actor, workspace_id, after from audit where action = $1 and subject = $2',
      ['losses.released', hostile.accountId],
    )
    const actor = `operator ${userInfo().username}`
    assert.deepEqual(rows, [{ actor, workspace_id: hostile.workspaceId, after: { route: RERANK, accounts: 1 } }])
    const presumed = (text: string) => text.split('\n').find((line) => line.startsWith('Presumed losses'))
    assert.equal(
      presumed(await said('losses')),
      presumed(lines.join('\n')),
      'what was released is not presumed for that',
    )
    const again = await farebox(...command)
    assert.equal(again.code, 1)
    assert.match(again.output, /there are no losses at rerank@rerank:test that still count/)
  })

  it('is told by a quote too, and by what became of a call that it repeats', async () => {
    const customer = await makeCustomer(pool, { money: MONEY })
    const headers = { 'idempotency-key': 'once' }
    const first = await call(url, customer.secret, 'rerank', 'sandbox:tokens=3000000', { headers })
    await untilCode(() => askHonestly(customer), 'loss_ceiling_account')
    const quote = await call(url, customer.secret, 'rerank', '', { headers: { 'x-farebox-cost-mode': 'quote' } })
    assert.equal(codeOf(quote), 'loss_ceiling_account')
    const repeated = await call(url, customer.secret, 'rerank', 'sandbox:tokens=3000000', { headers })
    assert.equal(codeOf(repeated), 'idempotency_completed')
    assert.equal((await lossesOf(customer)).length, 1)
    assert.equal(first.status, 200)
  })
})

describe('a route at which several accounts lose', () => {
  it('is taken out for all, for a while, and given back by one command', async () => {
    const customers = await Promise.all(Array.from({ length: 5 }, () => makeCustomer(pool, { money: MONEY })))
    const stranger = await makeCustomer(pool, { money: MONEY })
    // Each has lost 7.5 cents, and none is refused by itself.
    for (const customer of customers) await call(url, customer.secret, 'rerank', 'sandbox:tokens=1500000')
    const refused = await untilCode(() => askHonestly(stranger), 'loss_ceiling_route')
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '60'])
    assert.match(
      await said('losses'),
      /^rerank@rerank:test {2}.*REFUSED since .*: farebox losses release --route \S+$/m,
    )
    assert.match(await said('losses', 'release', '--route', RERANK), /Losses of \d+ accounts/)
    await untilCode(() => askHonestly(stranger), undefined)
  })
})

describe('a model with another route', () => {
  const seal = createSeal({ current: masterKey })

  async function makeModel(id: string, slots: Readonly<Record<string, string>>): Promise<void> {
    await saveModel({ pool }, { id, ...SANDBOX_LIMITS })
    await setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE, output: '500' })
    for (const [priority, [slot, baseUrl]] of Object.entries(slots).entries()) {
      const credential = new Secret('sandbox-key')
      await saveUpstream({ pool, ids, seal }, { slot, mode: 'test', baseUrl, kind: 'native', credential })
      await saveRoute({ pool, ids }, { model: id, slot, protocol: 'openai', upstreamModel: 'sandbox/long', priority })
    }
  }

  it('is asked there, and the route that over-reports is left out, whole answers and streams alike', async () => {
    await makeModel('two/routes', {
      'two.deviant': sandbox.deviant('openai', 'over-reports'),
      'two.honest': `${sandbox.url}/openai`,
    })
    const limits = { max_tokens: 100 }
    for (const asks of [question, streamed]) {
      const customer = await makeCustomer(pool, { money: MONEY })
      const chat = () => hear(url, customer.secret, asks('openai', 'two/routes', '', limits))
      // A thousand tokens instead of a hundred: half a dollar for five cents.
      await until(async () => (await chat()).status === 200, PATIENCE_MS, 'the model is known')
      await until(async () => (await lossesOf(customer)).length > 0, PATIENCE_MS, 'the loss')
      assert.deepEqual(
        new Set((await lossesOf(customer)).map(({ route }) => route)),
        new Set(['two/routes@two.deviant:test']),
      )
      const asked = async () => (await sandbox.journal()).at(-1)?.deviant
      await until(
        async () => {
          assert.equal((await chat()).status, 200)
          return (await asked())?.length === 0
        },
        PATIENCE_MS,
        'the honest one is asked',
      )
      assert.equal(
        (await ask(url, customer.secret, '/v1/chat/completions', question('openai', 'two/routes', '', limits))).status,
        200,
      )
    }
  })
})

describe('a video that is longer than what was held for', () => {
  it('counts when its task is settled, and the next one is refused', async () => {
    const customer = await makeCustomer(pool, { money: MONEY })
    const video = (word: string) => call(url, customer.secret, 'video_synthesis', word)
    assert.equal((await video('sandbox:video-seconds=30')).status, 200)
    await until(async () => (await lossesOf(customer)).length > 0, PATIENCE_MS, 'the settlement')
    const [loss] = await lossesOf(customer)
    assert.deepEqual([loss?.route, loss?.nanos], ['sandbox/video@video:test', await overrunOf(customer)])
    await untilCode(() => video('sandbox:video-seconds=30'), 'loss_ceiling_account')
  })
})

describe('what counts', () => {
  it('is an answer that was delivered and can not be read, as much as was held for it', async () => {
    const customer = await makeCustomer(pool, { money: MONEY })
    const told = await call(url, customer.secret, 'post_comments', 'sandbox:garbage')
    assert.equal(codeOf(told), 'upstream_unreadable')
    assert.deepEqual(await lossesOf(customer), [
      { route: 'post_comments@comments:test', nanos: await overrunOf(customer), claim: null },
    ])
  })

  it('is no page that a vendor shows in an outage instead of an answer, of data and of models', async () => {
    const customer = await makeCustomer(pool, { money: MONEY })
    const told = await call(url, customer.secret, 'post_comments', 'sandbox:html')
    assert.equal(codeOf(told), 'upstream_unreadable')
    const short = question('openai', 'sandbox/text', 'sandbox:html', { max_tokens: 1 })
    assert.equal((await hear(url, customer.secret, short)).status, 200)
    assert.ok((await overrunOf(customer)) > 0n, 'it has a figure of its own')
    assert.deepEqual(await lossesOf(customer), [])
  })

  it('is no error, no broken connection and no answer about our account', async () => {
    const customer = await makeCustomer(pool, { money: MONEY })
    for (const word of ['reset=before-headers', 'reset=in-body', 'truncate', 'close-early', 'status=500', 'status=401'])
      assert.ok((await call(url, customer.secret, 'rerank', `sandbox:${word}`)).status >= 400, word)
    assert.ok((await overrunOf(customer)) > 0n)
    assert.deepEqual(await lossesOf(customer), [])
  })
})

describe('the ledger', () => {
  it('holds after all this', async () => {
    assert.deepEqual(await verifyLedger(pool), [])
  })
})
