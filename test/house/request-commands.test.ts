import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { CONVERSATION_SLOTS, SANDBOX_LIMITS, SANDBOX_PRICE } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { saveModel, saveRoute, setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { ask, type Customer, call, ids, makeCustomer, makeKey, startInstallation } from '../acceptance/installation.ts'
import { chargeOf, hear, limited, question, streamed } from '../acceptance/models/streams.ts'
import { callOf, openSession } from '../ledger/session.ts'
import { startShell } from './command-shell.ts'
import { bareEnvironment } from './run-farebox.ts'

/** An operator looks for calls of all customers, over a service that runs, and is shown all of one. */

const { url: databaseUrl } = await freshDatabase()
const installation = await startInstallation(databaseUrl)
const { pool, url } = installation
const session = await openSession(databaseUrl)
after(() => Promise.all([session.close(), installation.stop()]))
const { farebox, said } = startShell({ ...bareEnvironment(), FAREBOX_DATABASE_URL: databaseUrl })

const MODEL = 'sandbox/text'
const NOBODY = '01a1dd7c-3f6a-7000-93b4-661a883f55ec'

/** A stream of it holds what it needs as it goes on, and its provider costs half of what it sells for. */
const GROWING = 'grow/seen'
await saveModel({ pool }, { id: GROWING, ...SANDBOX_LIMITS })
await setModelPrice({ pool }, { model: GROWING, ...SANDBOX_PRICE, providerInput: '0.1', providerOutput: '0.5' })
await saveRoute(
  { pool, ids },
  {
    ...{ model: GROWING, slot: CONVERSATION_SLOTS.openai, protocol: 'openai', upstreamModel: MODEL },
    profile: { abort: 'stops', output: 'seen', tokenBytes: 3 },
  },
)

type Listed = {
  id: string
  outcome: string
  cost_usd?: string
  model: string | null
  upstream?: string | null
  account: { id: string; mode: string }
}

async function listed(...line: readonly string[]) {
  const told: { requests: Listed[]; next: string | null; is_cut_short: boolean } = JSON.parse(
    await said('requests', 'list', '--json', ...line),
  )
  return told
}
const idsOf = async (...line: readonly string[]) => (await listed(...line)).requests.map(({ id }) => id)

async function refused(...line: readonly string[]): Promise<string> {
  const { code, output } = await farebox(...line)
  assert.equal(code, 1, output)
  return output
}

const detailed = (id: string) =>
  until(
    async () => (await pool.query('select from request_records where id = $1', [id])).rowCount === 1,
    PATIENCE_MS,
    'how the call ran',
  )

const [first, second]: [Customer, Customer] = [await makeCustomer(pool), await makeCustomer(pool)]
const chat = await ask(url, first.secret, '/v1/chat/completions', {
  body: { ...question('openai', MODEL).body, metadata: undefined },
  headers: { 'x-farebox-tags': 'team=search' },
})
const rerank = await call(url, first.secret, 'rerank')
const failed = await call(url, second.secret, 'rerank', 'sandbox:reset=before-headers')
const tag = await call(url, second.secret, 'tag_detail')
for (const { id } of [chat, rerank, failed, tag]) await detailed(id)

describe('farebox requests list', () => {
  it('finds calls of everybody by each of what they are known by, the latest first', async () => {
    assert.deepEqual(await idsOf('--test'), [tag.id, failed.id, rerank.id, chat.id])
    assert.deepEqual(await idsOf(), [], 'none of live money')
    assert.deepEqual(await idsOf('--account', first.workspaceId, '--test'), [rerank.id, chat.id])
    assert.deepEqual(await idsOf('--account', first.workspaceId), [])
    assert.deepEqual(await idsOf('--key', second.keyId), [tag.id, failed.id])
    assert.deepEqual(await idsOf('--test', '--model', MODEL), [chat.id])
    assert.deepEqual(await idsOf('--test', '--operation', 'rerank'), [failed.id, rerank.id])
    assert.deepEqual(await idsOf('--test', '--outcome', 'voided'), [failed.id])
    assert.deepEqual(await idsOf('--test', '--failed'), [failed.id])
    assert.deepEqual(await idsOf('--test', '--tag', 'team=search'), [chat.id])
    const { rows } = await pool.query('select route from charges where id = $1', [tag.id])
    assert.deepEqual(await idsOf('--test', '--upstream', rows[0].route), [tag.id])
    const soon = new Date(Date.now() + 30_000).toISOString().slice(0, 19)
    assert.deepEqual(await idsOf('--test', '--since', `${soon}Z`), [])
    assert.equal((await idsOf('--test', '--until', `${soon}Z`, '--since', '2026-01-01')).length, 4)
  })

  it('finds them by what they cost, less what was given back, as the ledger has it', async () => {
    const { rows } = await pool.query<{ id: string; amount: bigint }>(
      'select id, amount from charges where id = any ($1) order by amount desc',
      [[chat.id, rerank.id, failed.id, tag.id]],
    )
    const [dearest = assert.fail()] = rows
    const usd = (nanos: bigint) => `0.${nanos.toString().padStart(9, '0')}`
    assert.deepEqual(await idsOf('--test', '--min-cost', usd(dearest.amount)), [dearest.id])
    const costs = new Map((await listed('--test')).requests.map(({ id, cost_usd: cost }) => [id, cost]))
    assert.deepEqual(costs, new Map(rows.map(({ id, amount }) => [id, usd(amount)])))
    await said('charges', 'refund', dearest.id, '--amount', '0.000000001', '--reason', 'A nano.')
    assert.deepEqual(await idsOf('--test', '--min-cost', usd(dearest.amount)), [])
    assert.ok((await idsOf('--test', '--max-cost', usd(dearest.amount - 1n))).includes(dearest.id))
  })

  it('goes on page by page, and says in a line for each call what a person asks first', async () => {
    const seen: string[] = []
    let page = await listed('--test', '--limit', '3')
    seen.push(...page.requests.map(({ id }) => id))
    assert.deepEqual([page.requests.length, page.is_cut_short], [3, false])
    page = await listed('--test', '--limit', '3', '--after', page.next ?? '')
    seen.push(...page.requests.map(({ id }) => id))
    assert.deepEqual([seen, page.next], [[tag.id, failed.id, rerank.id, chat.id], null])
    const text = await said('requests', 'list', '--test', '--limit', '3')
    assert.match(
      text,
      new RegExp(
        `^\\S+Z  ${tag.id}  posted 0\\.\\d{9} USD  tag_detail  \\S+ status 200  Customer ${second.workspaceId}  key key\n`,
      ),
    )
    assert.match(text, /voided 0\.000000000 USD {2}rerank {2}\S+ status 502 failed {2}Customer/)
    assert.match(text, /There may be more\. For the next page, add --after \S+\n$/)
    assert.match(await said('requests', 'list'), /^No calls match that began from \S+ to \S+\.\n$/)
  })

  it('finds those that run, and those whose outcome nobody knows', async () => {
    const { workspaceId, accountId, keyId } = await makeCustomer(pool)
    const attribution = { model: MODEL, endUser: null, tags: [{ name: 'team', value: 'night' }] }
    const [running, lost] = [1, 2].map(() => callOf({ accountId, credentialId: keyId }, { hold: 7n, attribution }))
    if (running === undefined || lost === undefined) assert.fail()
    await session.begin(running, lost)
    await pool.query('select mark_unsettled(array[$1::uuid], (select owner_id from holds where id = $1))', [lost.id])
    assert.deepEqual(await idsOf('--test', '--outcome', 'running'), [running.id])
    assert.deepEqual(await idsOf('--outcome', 'running'), [])
    const own = ['--account', workspaceId, '--test', '--model', MODEL, '--tag', 'team=night', '--outcome', 'unsettled']
    assert.deepEqual(await idsOf(...own), [lost.id])
    assert.match(
      await said('requests', 'list', ...own),
      /unsettled holds 0\.000000007 USD {2}probe sandbox\/text {2}Customer/,
    )
    assert.match(
      await said('requests', 'show', running.id),
      /^Call \S+ \(probe, sandbox\/text\) is running since .*, by process /,
    )
    assert.match(
      await said('requests', 'show', lost.id),
      /its usage is unknown\.\n(.*\n)*When you know .* farebox ledger resolve/,
    )
  })

  it('says what is wrong with what it is given', async () => {
    for (const [line, wrong] of [
      [['--account', NOBODY], /there is no account/],
      [
        ['--account', first.workspaceId, '--key', second.keyId, '--test'],
        /is no key and no grant of this account's test money/,
      ],
      [['--outcome', 'lost'], /--outcome must be one of posted, voided, running, unsettled/],
      [['--outcome', 'running', '--failed'], /known only of calls that have ended/],
      [['--tag', 'x'], /--tag must be written name=value/],
      [['--after', 'x'], /--after must be the cursor that the last line of a page has/],
      [['--limit', '101'], /--limit must be a whole number from 1 to 100/],
      [['--min-cost', '-1'], /--min-cost/],
      [['--since', 'yesterday'], /"yesterday" is not a time/],
    ] as const)
      assert.match(await refused('requests', 'list', ...line), wrong)
  })
})

describe('farebox requests show', () => {
  it('has what the customer sees of a stream whose hold grew, and what the upstream cost, all as the ledger has it', async () => {
    const customer = await makeCustomer(pool)
    const heard = await hear(
      url,
      customer.secret,
      streamed('openai', GROWING, 'sandbox:output-tokens=6000', limited('openai', 32_000)),
    )
    const { amount, held } = await chargeOf(pool, heard.id)
    await detailed(heard.id)
    const shown = JSON.parse(await said('requests', 'show', heard.id, '--json'))
    const seen = (await ask(url, customer.secret, `/v1/requests/${heard.id}`)).json
    const detail = Object(seen.detail)
    const usdOf = (money: unknown) => String(Object(money).usd)
    assert.deepEqual(
      {
        id: shown.id,
        outcome: shown.outcome,
        cost: shown.cost_usd,
        tokens: shown.tokens,
        formula: shown.formula,
        version: shown.price_version,
        balance: shown.balance_after_usd,
        hold: shown.hold_steps.map(({ at_ms, usd }: { at_ms: number; usd: string }) => [at_ms, usd]),
        model: shown.model,
        status: shown.status,
      },
      {
        id: heard.id,
        outcome: seen.outcome,
        cost: usdOf(seen.cost),
        tokens: seen.tokens,
        formula: detail.formula,
        version: detail.price_version,
        balance: usdOf(detail.balance_after),
        hold: detail.hold.map((step: { at_ms: number; amount: unknown }) => [step.at_ms, usdOf(step.amount)]),
        model: seen.model,
        status: detail.status,
      },
    )
    const { rows } = await pool.query(
      'select c.upstream_cost, c.value, a.credited - a.charged - a.held as free from charges c join accounts a on a.id = c.account_id where c.id = $1',
      [heard.id],
    )
    const inUsd = (nanos: bigint) => `${nanos / 1_000_000_000n}.${(nanos % 1_000_000_000n).toString().padStart(9, '0')}`
    assert.equal(shown.charged_usd, inUsd(amount))
    assert.equal(shown.upstream_cost_usd, inUsd(rows[0].upstream_cost))
    assert.equal(shown.margin_usd, inUsd(amount - rows[0].upstream_cost))
    assert.ok(rows[0].upstream_cost > 0n)
    assert.equal(shown.balance_after_usd, inUsd(rows[0].free))
    assert.equal(shown.hold_steps.at(-1).usd, inUsd(held))
    assert.ok(shown.hold_steps.length > 1, JSON.stringify(shown.hold_steps))
    assert.equal(shown.attempts.length, 1)
    assert.match(shown.attempts[0].upstream_id, /^[0-9a-f-]{36}$/)
  })

  it('is what ledger explain says of a call, with what was corrected afterwards and how to give the rest back', async () => {
    const customer = await makeCustomer(pool)
    const chat = await ask(url, customer.secret, '/v1/chat/completions', { body: question('openai', MODEL).body })
    await detailed(chat.id)
    await said('charges', 'refund', chat.id, '--amount', '0.000000001', '--reason', 'A nano.')
    const text = await said('requests', 'show', chat.id)
    assert.equal(await said('ledger', 'explain', chat.id), text)
    assert.match(
      text,
      /^Call \S+ \(chat_completions, sandbox\/text\) was charged 0\.\d{9} USD\. It ended at \S+\. It began at \S+\.$/m,
    )
    assert.match(
      text,
      new RegExp(
        `^Customer: Customer, account ${customer.workspaceId}, test money \\(ledger account ${customer.accountId}\\)$`,
        'm',
      ),
    )
    assert.match(text, new RegExp(`^Made by: key ${customer.keyId}, key$`, 'm'))
    assert.match(
      text,
      /^Answer: status 200, begun after [\d.]+ ms, answered after [\d.]+ ms, settled after [\d.]+ ms, first byte after [\d.]+ ms$/m,
    )
    assert.match(text, /^Cost: 0\.\d{9} USD charged, 0\.000000001 given back, 0\.\d{9} left$/m)
    assert.match(
      text,
      new RegExp(`^Price: version ${chat.headers.get('x-farebox-price-version')}: \\d+ input tokens × `, 'm'),
    )
    assert.match(
      text,
      /^Tokens: \d+ input, \d+ output, 0 read from a cache, 0 written to one \(evidence: usage_source provider\)$/m,
    )
    assert.match(text, /^Held: (0\.\d{9}) USD at most: \1 after [\d.]+ ms$/m)
    assert.match(text, new RegExp(`^Balance after it: ${chat.headers.get('x-farebox-balance-usd')} USD$`, 'm'))
    assert.match(text, /^Attempt 1: \S+, upstream [0-9a-f-]{36}, from [\d.]+ to [\d.]+ ms: answered 200$/m)
    assert.match(text, /^Entry \S+, charge reversal at \S+, corrects \S+, charged -0\.000000001 USD\.$/m)
    assert.match(text, new RegExp(`^To give it back: farebox charges refund ${chat.id} --reason <text>\n$`, 'm'))
  })

  it('says of a call without a record of how it ran what the ledger has', async () => {
    const customer = await makeCustomer(pool)
    const tag = await call(url, customer.secret, 'tag_detail')
    await detailed(tag.id)
    await pool.query('delete from request_records where id = $1', [tag.id])
    assert.match(await said('requests', 'show', tag.id), /was charged .*\n(.*\n)*Answer: how it ran is not known/)
  })

  it('says what an id is that is none of a call, and where to look', async () => {
    assert.match(await refused('requests', 'show', NOBODY), /there is no call .*: a refused call leaves none/)
    assert.match(
      await refused('requests', 'show', 'x'),
      /"x" is not an id of a call: the caller has it as X-Request-ID/,
    )
  })

  it('names a key that was made later by nobody else, and a call of another key not at all', async () => {
    const customer = await makeCustomer(pool)
    const other = await makeKey(pool, customer.workspaceId)
    await call(url, other.secret, 'tag_detail')
    assert.deepEqual(await idsOf('--key', customer.keyId), [])
    assert.equal((await idsOf('--key', other.keyId)).length, 1)
  })
})
