import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { usd } from '../../../server/src/kernel/money.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { chunk, EVENTS_HEAD } from '../../upstreams/raw-stream.ts'
import { startUpstream } from '../../upstreams/raw-upstream.ts'
import { ask, codeOf, ids, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { type Charge, chargeOf, costOf, limited, settled, streamed } from './streams.ts'

/** An upstream that thinks where nobody sees it, and says one word in the end. */
const LIMIT = 60_000
const THOUGHT = 20_000
const SPEED = 10_000

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, masterKey } = installation
/** What it does with the next request. */
let answering: (socket: Socket) => Promise<void> = async () => {}
const upstream = await startUpstream(({ socket }) => void answering(socket))
after(async () => {
  await upstream.close()
  await installation.stop()
})
await saveUpstream(
  { pool, ids, seal: createSeal({ current: masterKey }) },
  { slot: 'hidden', mode: 'test', kind: 'native', baseUrl: upstream.url, credential: new Secret('key') },
)
for (const [id, topSpeed] of [
  ['hidden/declared', SPEED],
  ['hidden/silent', null],
] as const) {
  await saveModel({ pool }, { id, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE })
  const profile = { abort: 'stops', topSpeed } as const
  await saveRoute({ pool, ids }, { model: id, slot: 'hidden', protocol: 'openai', profile })
}

const frame = (value: unknown) => chunk(`data: ${JSON.stringify(value)}\n\n`)
const word = (content: string) => frame({ id: 'c', choices: [{ index: 0, delta: { content } }] })
const report = (tokens: number) => frame({ choices: [], usage: { prompt_tokens: 40, completion_tokens: tokens } })
const ENDED = frame({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const DONE = `${chunk('data: [DONE]\n\n')}0\r\n\r\n`

/** Thinks for so long, at its top speed, and then says one word; in bursts it is heard to be alive meanwhile. */
function thinking(ms: number, { bursts = false, isLateHead = false, tokens = THOUGHT } = {}) {
  return async (socket: Socket) => {
    if (!isLateHead) socket.write(EVENTS_HEAD)
    const parts = bursts ? 10 : 1
    for (let part = 0; part < parts; part += 1) {
      await delay(ms / parts)
      if (bursts) socket.write(chunk(': thinking\n\n') + word('.'))
    }
    if (isLateHead) socket.write(EVENTS_HEAD)
    socket.write(word('Forty-two') + ENDED + report(tokens) + DONE)
  }
}

type Heard = Told & { readonly charge: Charge; readonly accountId: string }

async function think(money: bigint | undefined, answer: typeof answering, model = 'hidden/declared'): Promise<Heard> {
  answering = answer
  const { secret, accountId } = await makeCustomer(pool, money === undefined ? {} : { money })
  const { path, body } = streamed('openai', model, 'sandbox:', limited('openai', LIMIT))
  const told = await ask(url, secret, path, { body })
  const charge = await chargeOf(pool, told.id)
  await settled(pool, accountId)
  assert.deepEqual(await verifyLedger(pool, [accountId]), [])
  return { ...told, charge, accountId }
}

async function heldFor(output: number): Promise<bigint> {
  const { secret } = await makeCustomer(pool)
  const { path, body } = streamed('openai', 'hidden/declared', 'sandbox:', limited('openai', output))
  const { json } = await ask(url, secret, path, { body, headers: { 'x-farebox-cost-mode': 'quote' } })
  return usd(Object(json.max).usd)
}

const ALL = await heldFor(LIMIT)
const THINKING_MS = (1_000 * THOUGHT) / SPEED

describe('an upstream that thinks in hiding', () => {
  for (const [title, how] of [
    ['in one go', {}],
    ['in bursts', { bursts: true }],
    ['before its first byte', { isLateHead: true }],
  ] as const)
    it(`stays within the hold of a route that declares its speed, ${title}`, async () => {
      const { charge, status } = await think(undefined, thinking(THINKING_MS, how))
      assert.equal(status, 200)
      const { tokens, amount, held, overrun } = charge
      assert.deepEqual([tokens.output, amount, overrun], [THOUGHT, costOf(tokens), 0n])
      assert.ok(amount <= held && held <= ALL)
    })

  it('is held for in full from the start where no speed is declared', async () => {
    const { charge } = await think(undefined, thinking(0), 'hidden/silent')
    assert.deepEqual([charge.tokens.output, charge.overrun, charge.held], [THOUGHT, 0n, ALL])
  })

  it('is held for at the end where it was faster than its route declares, as far as there is money', async () => {
    const { charge } = await think(undefined, thinking(0, { tokens: 30_000 }))
    assert.deepEqual([charge.tokens.output, charge.overrun, charge.amount], [30_000, 0n, costOf(charge.tokens)])
    assert.ok(charge.held < ALL)
  })

  describe('and answers whole although a stream was asked for', () => {
    async function answerWhole(socket: Socket): Promise<void> {
      const text = JSON.stringify({
        choices: [{ index: 0, message: { role: 'assistant', content: 'Forty-two' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 40, completion_tokens: 30_000 },
      })
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}`
      socket.write(`${head}\r\n\r\n${text}`)
    }

    it('is held for', async () => {
      const { charge, status } = await think(undefined, answerWhole)
      assert.deepEqual([status, charge.tokens.output, charge.overrun], [200, 30_000, 0n])
    })

    it('gives nobody more than can be held for it: the answer is withheld, costs its caller nothing, and is evidence of a loss', async () => {
      const told = await think(await heldFor(SPEED * 2), answerWhole)
      const { charge, status, text, json } = told
      assert.deepEqual([status, codeOf(told), json.error], [402, 'insufficient_balance', json.error])
      assert.doesNotMatch(text, /Forty-two/)
      assert.match(text, /withheld. Nothing was charged/)
      const cost = costOf({ input: 40, output: 30_000, cacheRead: 0, cacheWrite: 0 })
      assert.deepEqual([charge.outcome, charge.amount, charge.overrun], ['voided', 0n, cost])
      const { rows } = await pool.query('select nanos, claim from losses where id = $1', [told.id])
      assert.deepEqual(rows, [{ nanos: cost, claim: cost }])
    })
  })

  it('costs the operator what was made beyond that, and the caller no more than the hold', async () => {
    const money = await heldFor(SPEED * 2)
    const fast = async (socket: Socket) => {
      socket.write(EVENTS_HEAD + word('Forty-two') + ENDED + report(50_000) + DONE)
    }
    const { charge } = await think(money, fast)
    const { amount, held, overrun } = charge
    assert.deepEqual([amount, held], [held, money])
    const cost = costOf({ input: 40, output: 50_000, cacheRead: 0, cacheWrite: 0 })
    assert.equal(overrun, cost - held)
  })

  it('is given up before it has made more than is held for, and the caller is told', async () => {
    const money = await heldFor(SPEED * 2)
    for (const isHeard of [true, false]) {
      let closed = false
      const told = await think(money, async (socket) => {
        socket.once('close', () => {
          closed = true
        })
        if (isHeard) socket.write(EVENTS_HEAD + word('Well'))
      })
      const { charge, status, text } = told
      await until(() => closed, PATIENCE_MS, 'the upstream is left')
      assert.ok(charge.held <= money)
      if (isHeard) {
        assert.match(text, /"finish_reason":"length"/)
        assert.match(text, /"ended_by":"balance"/)
        assert.deepEqual([status, charge.outcome, charge.overrun], [200, 'posted', 0n])
        assert.ok(charge.amount < money / 10n)
      } else {
        assert.deepEqual([status, codeOf(told)], [402, 'insufficient_balance'])
        assert.deepEqual([charge.outcome, charge.tokens.output, charge.overrun], ['posted', 0, 0n])
      }
    }
  })
})
