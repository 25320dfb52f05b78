import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { after, describe, it } from 'node:test'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { changeKey } from '../../../server/src/identity/key-changes.ts'
import type { NewKey } from '../../../server/src/identity/keys.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { chunk, EVENTS_HEAD } from '../../upstreams/raw-stream.ts'
import { startUpstream } from '../../upstreams/raw-upstream.ts'
import { ACTOR, ask, type Customer, codeOf, errorOf, ids, makeCustomer, startInstallation } from '../installation.ts'
import {
  type Charge,
  chargesOf,
  costOf,
  evidenceOf,
  leftOver,
  question,
  settled,
  socketsOf,
  streamed,
} from './streams.ts'

/** Who pays when a caller hangs up, at an upstream whose every byte the test writes. */
const STOPS = 'left/stops'
const RUNS_ON = 'left/runs-on'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, masterKey } = installation
/** Where an upstream was asked, until the test has looked at it. */
const asked: Socket[] = []
const upstream = await startUpstream(({ socket }) => void asked.push(socket))
after(async () => {
  await upstream.close()
  await installation.stop()
})
await saveUpstream(
  { pool, ids, seal: createSeal({ current: masterKey }) },
  { slot: 'left', mode: 'test', kind: 'native', baseUrl: upstream.url, credential: new Secret('key') },
)
for (const [id, abort] of [
  [STOPS, 'stops'],
  [RUNS_ON, 'runs_on'],
] as const) {
  await saveModel({ pool }, { id, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE })
  await saveRoute({ pool, ids }, { model: id, slot: 'left', protocol: 'openai', profile: { abort } })
}

const frame = (value: unknown) => chunk(`data: ${JSON.stringify(value)}\n\n`)
const WORDS = 'seven brave foxes ran home. '.repeat(40)
const BEGUN = EVENTS_HEAD + frame({ choices: [{ index: 0, delta: { content: WORDS } }] })
const ENDED = frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const REPORTED = { input: 90, output: 1_234, cacheRead: 0, cacheWrite: 0 }
const USAGE = frame({ choices: [], usage: { prompt_tokens: 90, completion_tokens: 1_234 } })
const REST = `${ENDED}${USAGE}${chunk('data: [DONE]\n\n')}0\r\n\r\n`

type Wanted = {
  /** Somebody new, where left out. */
  readonly customer?: Customer
  readonly model?: string
  readonly header?: 'finish' | 'cancel'
  readonly key?: Partial<NewKey>
  /** What the upstream has said when the caller leaves. */
  readonly said?: string
  readonly isWhole?: boolean
  readonly content?: unknown
}

type Left = { readonly customer: Customer; readonly socket: Socket; readonly charge: () => Promise<Charge> }

/** Asks, and leaves once the upstream has said so much and the caller has it. */
async function leave({
  model = STOPS,
  header,
  key = {},
  customer: known,
  said = BEGUN,
  isWhole = false,
  content,
}: Wanted): Promise<Left> {
  const customer = known ?? (await makeCustomer(pool, { key }))
  const leaving = new AbortController()
  const make = isWhole ? question : streamed
  const { path, body } = make('openai', model, 'word '.repeat(30), { max_tokens: 2_000 })
  const running = fetch(url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${customer.secret}`,
      'content-type': 'application/json',
      ...(header && { 'x-farebox-on-disconnect': header }),
    },
    body: JSON.stringify({ ...body, ...(content !== undefined && { messages: [{ role: 'user', content }] }) }),
    signal: leaving.signal,
  }).catch(() => undefined)
  await until(async () => asked.length > 0, PATIENCE_MS, 'that the upstream is asked')
  const socket = asked.shift() ?? assert.fail()
  socket.write(said)
  if (said !== '') {
    const reader = (await running)?.body?.getReader()
    await reader?.read()
  }
  const before = connections()
  leaving.abort()
  await running
  await until(async () => connections() < before, PATIENCE_MS, 'that the gateway has seen its caller leave')
  async function charge(): Promise<Charge> {
    await settled(pool, customer.accountId)
    const [found] = (await chargesOf(pool, { accountId: customer.accountId })).values()
    return found ?? assert.fail('the call has left no row')
  }
  return { customer, socket, charge }
}

/** How many callers the gateway has, as the kernel knows it. */
function connections(): number {
  const [gateway] = installation.gateways
  return socketsOf(gateway?.pid ?? 0, Number(new URL(url).port))
}

const isClosed = (socket: Socket) => until(async () => socket.destroyed, PATIENCE_MS, 'that the upstream is given up')

/** The input as counted, and what was delivered and no more, within what was held. */
function assertDelivered(charge: Charge, output: 'nothing' | 'words'): void {
  const { tokens, amount, overrun, held } = charge
  assert.equal(charge.outcome, 'posted')
  assert.ok(tokens.input > 40 && tokens.input < 70, `${tokens.input}`)
  if (output === 'nothing') assert.equal(tokens.output, 0)
  else assert.ok(tokens.output >= 240 && tokens.output <= 1_120, `${tokens.output}`)
  assert.deepEqual([amount, overrun], [costOf(tokens), 0n])
  assert.ok(amount <= held)
}

const assertReported = ({ outcome, tokens, amount }: Charge) =>
  assert.deepEqual([outcome, tokens, amount], ['posted', REPORTED, costOf(REPORTED)])

describe('MODEL-3 cancel: an upstream whose meter stops when it is left is given up at once', () => {
  for (const [whose, wanted] of [
    ['by the header', { header: 'cancel' }],
    ['by its key', { key: { onDisconnect: 'cancel' } }],
    ['by the header, whatever its key says', { header: 'cancel', key: { onDisconnect: 'finish' } }],
    ['by default', {}],
  ] as const)
    it(`trap: in the middle, and the caller pays the input and what was delivered: ${whose}`, async () => {
      const { socket, charge, customer } = await leave(wanted)
      await isClosed(socket)
      const made = await charge()
      assertDelivered(made, 'words')
      const { evidence } = await evidenceOf(url, customer.secret, made.id)
      assert.equal(Object(evidence).usage_source, 'counted')
    })

  it('before its answer begins, and the caller pays the input that was sent', async () => {
    const { socket, charge, customer } = await leave({ header: 'cancel', said: '' })
    await isClosed(socket)
    const made = await charge()
    assertDelivered(made, 'nothing')
    const { upstream: attempts, first_byte_ms } = Object(await evidenceOf(url, customer.secret, made.id))
    assert.deepEqual([attempts.length, attempts[0].reason, first_byte_ms], [1, 'aborted', null])
    const { json } = await ask(url, customer.secret, `/v1/requests/${made.id}`)
    assert.deepEqual([json.outcome, json.failed], ['posted', false])
  })

  it('trap: and pays what the input has that is no text', async () => {
    const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
    for (const said of [BEGUN, '']) {
      const { socket, charge } = await leave({ said, content: [{ type: 'text', text: 'word' }, picture, picture] })
      await isClosed(socket)
      const { tokens, amount, overrun, held } = await charge()
      assert.equal(tokens.input, 2 * SANDBOX_LIMITS.partTokens.image + 2)
      assert.deepEqual([amount, overrun, amount <= held], [costOf(tokens), 0n, true])
    }
  })

  it('trap: and what was delivered, where a report came before that', async () => {
    const early = { choices: [], usage: { prompt_tokens: 90, completion_tokens: 0 } }
    const { socket, charge } = await leave({ said: EVENTS_HEAD + frame(early) + BEGUN.slice(EVENTS_HEAD.length) })
    await isClosed(socket)
    const { tokens } = await charge()
    assert.ok(tokens.input === 90 && tokens.output >= 240, JSON.stringify(tokens))
  })

  it('trap: but not once the answer has ended, when its usage comes next and is charged', async () => {
    const { socket, charge } = await leave({ header: 'cancel', said: BEGUN + ENDED })
    socket.write(REST.slice(ENDED.length))
    assertReported(await charge())
  })
})

describe('MODEL-3 an upstream is heard out, and the caller pays what it reports', () => {
  it('and its place among the calls at once is free, for as many as the key may have at once', async () => {
    const { customer, socket: first } = await leave({ header: 'finish', key: { rates: { concurrency: 1 } } })
    const atOnce = async () =>
      (await pool.query('select calls_at_once as n from credentials where account_id = $1', [customer.accountId]))
        .rows[0]?.n
    await until(async () => (await atOnce()) === 0, PATIENCE_MS, 'that the place is free')
    const { socket: second } = await leave({ header: 'finish', customer })
    // This one is read on beyond what may be, so that it keeps its place.
    const { path, body } = streamed('openai', STOPS, 'word', { max_tokens: 2_000 })
    const third = await ask(url, customer.secret, path, { body })
    assert.deepEqual([third.status, codeOf(third)], [429, 'rate_limit_exceeded'])
    for (const socket of [first, second]) socket.write(REST)
    await settled(pool, customer.accountId)
    const charges = [...(await chargesOf(pool, { accountId: customer.accountId })).values()]
    assert.equal(charges.length, 2)
    for (const charge of charges) assertReported(charge)
    assert.equal(await atOnce(), 0)
    assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
  })

  for (const [whose, wanted] of [
    ['finish by the header', { header: 'finish' }],
    ['finish by its key', { key: { onDisconnect: 'finish' } }],
    ['finish by the header, whatever its key says', { header: 'finish', key: { onDisconnect: 'cancel' } }],
    ['cancel, where its meter runs on', { header: 'cancel', model: RUNS_ON }],
    ['finish before its answer begins', { header: 'finish', said: '' }],
    ['cancel before its answer begins, where its meter runs on', { header: 'cancel', model: RUNS_ON, said: '' }],
  ] as const)
    it(`trap: ${whose}`, async () => {
      const { socket, charge } = await leave(wanted)
      socket.write(('said' in wanted ? BEGUN : '') + REST)
      assertReported(await charge())
      assert.equal(socket.destroyed, false)
    })

  it('trap: of an answer in one piece, of which nobody could say what was made of it, whatever was chosen', async () => {
    const { socket, charge } = await leave({ header: 'cancel', isWhole: true, said: '' })
    const body = JSON.stringify({
      choices: [{ index: 0, message: { content: WORDS }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 90, completion_tokens: 1_234 },
    })
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    assertReported(await charge())
  })
})

describe('the choice', () => {
  it('is finish or cancel: another word is refused by every operation, and nobody is asked', async () => {
    const { secret } = await makeCustomer(pool)
    const headers = { 'x-farebox-on-disconnect': 'stop' }
    for (const { path, body } of [
      streamed('openai', STOPS),
      { path: '/apis/v1/reseller/social_c/web/fetch_tag_detail?tag_name=a', body: undefined },
    ]) {
      const told = await ask(url, secret, path, { headers, ...(body && { body }) })
      assert.deepEqual([told.status, codeOf(told)], [400, 'invalid_request'])
      assert.equal(errorOf(told).message, 'The header for disconnects must be finish or cancel.')
    }
    assert.equal(asked.length, 0)
  })

  it('of a key is changed for calls that begin after that', async () => {
    const { customer, socket, charge } = await leave({ key: { onDisconnect: 'finish' } })
    await changeKey({ pool, ids }, ACTOR, customer.keyId, { onDisconnect: 'cancel' })
    socket.write(REST)
    assertReported(await charge())
    const { rows } = await pool.query('select on_disconnect from api_keys where id = $1', [customer.keyId])
    assert.deepEqual(rows, [{ on_disconnect: 'cancel' }])
  })
})

it('leaves no hold and no place behind, and a ledger that adds up', async () => {
  await settled(pool)
  assert.deepEqual(await leftOver(pool), { holds: 0, claims: 0 })
  assert.deepEqual(await verifyLedger(pool), [])
})
