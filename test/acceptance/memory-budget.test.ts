import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, describe, it } from 'node:test'
import { EMBEDDING_MODEL } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { ask, type Customer, makeCustomer, startInstallation, type Told } from './installation.ts'
import { chargeOf, leftOver, settled, streamed } from './models/streams.ts'

const MIB = 1_048_576
const database = await freshDatabase()
// As small as it may be: one call of the largest kind for each account, and two in all.
const installation = await startInstallation(database.url, {
  env: { FAREBOX_MEMORY_BUDGET_BYTES: String(180 * MIB), FAREBOX_HTTP_MODEL_BODY_BYTES: String(MIB) },
})
const { url, pool, sandbox } = installation
after(installation.stop)
const gateway = installation.gateways[0] ?? assert.fail('a gateway')

/** 900 vectors of 3,072 numbers: 54 MiB, for which 64 are reserved. */
const LARGEST = { model: EMBEDDING_MODEL, input: Array.from({ length: 900 }, () => 'a'), dimensions: 3_072 }
const SMALL = { model: EMBEDDING_MODEL, input: 'a', dimensions: 8 }
const REPLY_MOST = 64 * MIB

async function figure(name: string): Promise<number> {
  const exposed = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  return Number(new RegExp(`^farebox_memory_${name} (\\S+)$`, 'm').exec(exposed)?.[1])
}
const reserved = () => figure('reserved_bytes')
const untilReserved = (isSo: (bytes: number) => boolean, what: string) =>
  until(async () => isSo(await reserved()), PATIENCE_MS, what)
const untilReturned = () => untilReserved((bytes) => bytes === 0, 'that nothing is reserved')

const embed = ({ secret }: Customer, body: unknown, headers = {}): Promise<Told> =>
  ask(url, secret, '/v1/embeddings', { body, headers })

/** A call of the largest kind whose upstream takes its time, and then has only a few words. Gives what waits for its end. */
async function holdLargest(customer: Customer): Promise<() => Promise<void>> {
  const before = await reserved()
  await sandbox.fault('openai', ['delay=6000', 'status=400'])
  const asked = embed(customer, LARGEST)
  await untilReserved((bytes) => bytes >= before + REPLY_MOST, 'that the largest call has begun')
  await sandbox.faultsTaken()
  return async () => {
    assert.equal((await asked).status, 400)
    await untilReturned()
  }
}

/** Asks, and reads nothing until it is told to. */
function askUnread({ secret }: Customer, body: unknown, path = '/v1/embeddings'): Socket {
  const text = JSON.stringify(body)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {}).pause()
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  )
  return socket
}

describe('a call for which there is no memory', () => {
  it('is refused before anything is held, while others and small ones are served', async () => {
    const [customer, other] = [await makeCustomer(pool), await makeCustomer(pool)]
    const ended = await holdLargest(customer)
    const refusals = await figure('refusals_total')
    const refused = await embed(customer, LARGEST, { 'idempotency-key': 'once' })
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
    assert.equal(Object(refused.json.error).code, 'overloaded')
    assert.match(refused.text, /not enough memory/)
    const asked = (await sandbox.journal()).filter(({ request_id }) => request_id === refused.id)
    assert.deepEqual(asked, [], 'nobody was asked')
    assert.deepEqual([await figure('refusals_total'), await figure('waiting')], [refusals + 1, 0])
    const { rows } = await pool.query('select id from holds where id = $1 union select id from charges where id = $1', [
      refused.id,
    ])
    assert.deepEqual(rows, [])
    // The key was not used up, and a small call has its own part.
    assert.equal((await embed(customer, SMALL, { 'idempotency-key': 'once' })).status, 200)
    assert.equal((await embed(other, { ...LARGEST, dimensions: 8 })).status, 200)
    await ended()
  })

  it('is served after a moment where room comes free meanwhile', async () => {
    const customer = await makeCustomer(pool)
    const ended = await holdLargest(customer)
    // As a caller does who is told to try again: the last try comes within a second of the end.
    let told = await embed(customer, { ...LARGEST, dimensions: 2_500, input: LARGEST.input.slice(0, 10) })
    for (let tries = 0; told.status === 503 && tries < 60; tries += 1)
      told = await embed(customer, { ...LARGEST, dimensions: 100 })
    assert.equal(told.status, 200)
    await ended()
  })

  it('gets a quote all the same, for which nothing is reserved', async () => {
    const customer = await makeCustomer(pool)
    const ended = await holdLargest(customer)
    const quote = await embed(customer, LARGEST, { 'x-farebox-cost-mode': 'quote' })
    assert.equal(quote.status, 200)
    await ended()
  })
})

describe('what was reserved for a call', () => {
  const returned: Readonly<Record<string, readonly [directives: readonly string[], status: number, body?: object]>> = {
    'ended well': [[], 200],
    'was refused by its upstream': [['status=400'], 400],
    'broke off before its headers': [['reset=before-headers'], 502],
    'broke off in the middle of its reply': [['reset=in-body'], 502],
    'was closed in the middle of its reply': [['truncate'], 502],
    'got a reply that is no JSON': [['garbage'], 200],
    'got more than was reserved, in one length': [[`big=${5 * MIB}`], 200],
    'got more than was reserved, in chunks': [[`big=${5 * MIB}`, 'chunked'], 200],
    'got more than is ever taken': [[`big=${65 * MIB}`], 502],
    'got more than is ever taken, in chunks': [[`big=${65 * MIB}`, 'chunked'], 502],
  }
  for (const [how, [directives, status]] of Object.entries(returned)) {
    it(`is given back when it ${how}`, async () => {
      const customer = await makeCustomer(pool)
      if (directives.length > 0) await sandbox.fault('openai', directives)
      const told = await embed(customer, SMALL)
      assert.equal(told.status, status, told.text.slice(0, 300))
      await untilReturned()
      await settled(pool)
    })
  }

  it('is given back when its caller leaves while its upstream thinks, once that has answered', async () => {
    const customer = await makeCustomer(pool)
    await sandbox.fault('openai', ['delay=3000', 'status=400'])
    const leaving = new AbortController()
    const asked = fetch(`${url}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${customer.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...LARGEST, dimensions: 2_000 }),
      signal: leaving.signal,
    }).catch(() => undefined)
    await untilReserved((bytes) => bytes >= 40 * MIB, 'that it has begun')
    await sandbox.faultsTaken()
    leaving.abort()
    await asked
    assert.ok((await reserved()) >= 40 * MIB, 'its reply is still to come')
    await untilReturned()
    await settled(pool)
  })

  it('stays reserved for an answer that nobody reads, as much of it as there is, until the caller has left', async () => {
    const customer = await makeCustomer(pool)
    await sandbox.fault('openai', [`big=${40 * MIB}`])
    const socket = askUnread(customer, SMALL)
    await untilReserved((bytes) => bytes >= 40 * MIB && bytes < 41 * MIB, 'that the reply is there, and no more')
    await settled(pool)
    assert.ok((await reserved()) >= 40 * MIB, 'the call has ended, and its answer was not read')
    socket.destroy()
    await untilReturned()
  })

  it('is given back when an answer that was left unread is read after all', async () => {
    const customer = await makeCustomer(pool)
    await sandbox.fault('openai', [`big=${20 * MIB}`])
    const socket = askUnread(customer, SMALL)
    await untilReserved((bytes) => bytes >= 20 * MIB, 'that the reply is there')
    let bytes = 0
    socket.on('data', (chunk) => {
      bytes += chunk.length
    })
    socket.resume()
    await until(() => bytes >= 20 * MIB, PATIENCE_MS, 'that all of it has come')
    await untilReturned()
    socket.destroy()
  })

  it('is given back at the end of a stream, and when its caller leaves it', async () => {
    const customer = await makeCustomer(pool)
    const question = streamed('openai', 'sandbox/slow', 'hello')
    const response = await fetch(url + question.path, {
      method: 'POST',
      headers: { authorization: `Bearer ${customer.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(question.body),
    })
    assert.ok((await reserved()) >= 65_536)
    await response.text()
    await untilReturned()
    const socket = askUnread(customer, question.body, question.path)
    await once(socket.resume(), 'data')
    assert.ok((await reserved()) >= 65_536)
    socket.destroy()
    await untilReturned()
    await settled(pool)
  })

  it('grows with a stream whose text is long', async () => {
    const customer = await makeCustomer(pool)
    const tokens = 60_000
    const text = `sandbox:output-tokens=${tokens} sandbox:delta-bytes=3000`
    const question = streamed('openai', 'sandbox/checksum', `${text} sandbox:delta-ms=10`, { max_tokens: tokens })
    const response = await fetch(url + question.path, {
      method: 'POST',
      headers: { authorization: `Bearer ${customer.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(question.body),
    })
    const heard = response.text()
    await untilReserved((bytes) => bytes > 150_000, 'that it has grown')
    await heard
    await untilReturned()
  })
})

describe('the body of a request', () => {
  it('is reserved before it is read, and given back when its caller leaves', async () => {
    const customer = await makeCustomer(pool)
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    const head = `POST /v1/embeddings HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${customer.secret}\r\ncontent-type: application/json\r\n`
    socket.write(`${head}content-length: 100000\r\n\r\n{`)
    await untilReserved((bytes) => bytes === 300_000, 'three times what was declared')
    socket.destroy()
    await untilReturned()
  })

  it('is reserved as a small one where its length is not declared, and as it is once it is there', async () => {
    const customer = await makeCustomer(pool)
    await sandbox.fault('openai', ['delay=3000'])
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    const head = `POST /v1/embeddings HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${customer.secret}\r\ncontent-type: application/json\r\n`
    const text = JSON.stringify(SMALL)
    socket.write(`${head}transfer-encoding: chunked\r\n\r\n`)
    await untilReserved((bytes) => bytes === MIB, 'what a small one has at the most')
    socket.write(`${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`)
    await untilReserved((bytes) => bytes > 0 && bytes < 100_000, 'what it has')
    await sandbox.faultsTaken()
    socket.destroy()
    await untilReturned()
  })

  it('of unknown length is refused where it turns out to be large and there is no room, and a small one is not', async () => {
    const customer = await makeCustomer(pool)
    const ended = await holdLargest(customer)
    // The account has room for one large body beside it.
    const sendUnended = (socket: Socket) => {
      const head = `POST /v1/embeddings HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${customer.secret}\r\ncontent-type: application/json\r\n`
      socket.write(`${head}transfer-encoding: chunked\r\n\r\n${(400_000).toString(16)}\r\n${' '.repeat(400_000)}\r\n`)
    }
    const sockets = [1, 2].map(() => connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {}))
    const [first, second] = sockets
    assert.ok(first !== undefined && second !== undefined)
    sendUnended(first)
    await untilReserved((bytes) => bytes >= REPLY_MOST + 2 * MIB, 'that the first is known to be large')
    sendUnended(second)
    const [answer] = await once(second, 'data')
    assert.match(String(answer), /^HTTP\/1\.1 503 .*retry-after: 1\r\n.*not enough memory/is)
    const small = await fetch(`${url}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${customer.secret}`, 'content-type': 'application/json' },
      body: new Blob([JSON.stringify(SMALL)]).stream(),
      duplex: 'half',
    })
    assert.equal(small.status, 200)
    await small.text()
    for (const socket of sockets) socket.destroy()
    await ended()
  })

  it('of somebody who is not known is reserved as far as its route reads it', async () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    const head =
      'POST /apis/v1/social_a/oauth_callback/undo HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n'
    socket.write(`${head}transfer-encoding: chunked\r\n\r\n1\r\nt\r\n`)
    await untilReserved((bytes) => bytes === 3 * 1_024, 'what is read of it at the most')
    socket.destroy()
    await untilReturned()
  })
})

describe('the largest reply', () => {
  it('is charged as its upstream reports, and comes as it was', async () => {
    const customer = await makeCustomer(pool)
    const body = { ...LARGEST, input: LARGEST.input.slice(0, 200) }
    const told = await embed(customer, body)
    assert.equal(told.status, 200)
    assert.ok(told.text.length > 10 * MIB)
    const { data, usage } = JSON.parse(told.text)
    assert.equal(data.length, 200)
    const charge = await chargeOf(pool, told.id)
    assert.deepEqual([charge.tokens.input, charge.amount], [usage.prompt_tokens, BigInt(usage.prompt_tokens) * 100n])
    const direct = await fetch(`${sandbox.url}/openai/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: 'Bearer sandbox-key', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    assert.equal(await direct.text(), told.text)
  })
})

describe('in the end', () => {
  it('nothing is reserved, nothing is held, and the ledger adds up', async () => {
    await untilReturned()
    await until(async () => (await leftOver(pool)).holds === 0, PATIENCE_MS, 'that nothing is held')
    assert.deepEqual(await verifyLedger(pool), [])
  })
})
