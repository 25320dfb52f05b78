import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { CONVERSATION_SLOTS, SANDBOX_LIMITS, SANDBOX_PRICE } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { ask, ids, makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { chargeOf, limited, settled, streamed } from '../acceptance/models/streams.ts'
import { countedOf, endUserIdOf, set, untilKnown, type Wanted } from './setting.ts'

/** Streams whose hold grows, and budgets that have no more for them. */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)

const MODEL = 'grow/seen'
await saveModel({ pool }, { id: MODEL, ...SANDBOX_LIMITS })
await setModelPrice({ pool }, { model: MODEL, ...SANDBOX_PRICE })
await saveRoute(
  { pool, ids },
  {
    ...{ model: MODEL, slot: CONVERSATION_SLOTS.openai, protocol: 'openai', upstreamModel: 'sandbox/text' },
    profile: { abort: 'stops', output: 'seen', tokenBytes: 3 },
  },
)

const HEADERS = { 'x-farebox-tags': 'team=a', 'x-farebox-end-user': 'zoe' }
const question = (output: number) => streamed('openai', MODEL, 'sandbox:output-tokens=9000', limited('openai', output))

async function heldFor(output: number): Promise<bigint> {
  const { secret } = await makeCustomer(pool)
  const { path, body } = question(output)
  const { json } = await ask(url, secret, path, { body, headers: { 'x-farebox-cost-mode': 'quote' } })
  return usd(Object(json.max).usd)
}

const ENOUGH = await heldFor(3_000)
const PLENTY = await heldFor(30_000)

describe('a stream whose hold grows', () => {
  for (const kind of ['workspace', 'tag', 'end_user'] as const)
    it(`ends where the budget of its ${kind} does, says so, and never holds more than any of them has`, async () => {
      const customer = await makeCustomer(pool)
      const wanted: readonly Omit<Wanted, 'amount'>[] = [
        { kind: 'workspace' },
        { kind: 'tag', subject: 'team=a' },
        { kind: 'end_user', subject: 'zoe' },
      ]
      const made = []
      for (const one of wanted)
        made.push(await set(pool, customer, { ...one, amount: one.kind === kind ? ENOUGH : PLENTY }))
      await untilKnown(url, customer.secret, 3, HEADERS)
      const { path, body } = question(32_000)
      const told = await ask(url, customer.secret, path, { body, headers: HEADERS })
      assert.equal(told.status, 200, told.text)
      assert.match(told.text, new RegExp(`"ended_by":"${kind}_budget"`))
      const { held, overrun, tokens } = await chargeOf(pool, told.id)
      assert.equal(overrun, 0n)
      // What is left at the end is granted too: nobody is cut with half of the money there.
      assert.ok(
        held <= ENOUGH && tokens.output > 2_500 && tokens.output <= 3_000,
        `${held} of ${ENOUGH}, ${tokens.output}`,
      )
      await settled(pool, customer.accountId)
      for (const { id, amount } of made) assert.ok((await countedOf(pool, id)) <= amount)
      assert.equal(made[2]?.subject, endUserIdOf(customer.accountId, 'zoe'))
      assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
    })
})
