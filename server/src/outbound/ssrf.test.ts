import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recordProof } from '../../../harness/proof.ts'
import { hostileUrls } from '../../../test/acceptance/ssrf-urls.ts'
import { failureOf, get, startOutbound } from '../../../test/outbound/asking.ts'
import { type Canary, startCanary } from '../../../test/outbound/canary.ts'
import { HOSTILE_HOSTS, hostileUrlsOf, otherSchemes } from '../../../test/outbound/hostile-hosts.ts'
import { startNameServer } from '../../../test/outbound/name-server.ts'
import { PRIVATE_ADDRESSES } from '../../../test/outbound/private-addresses.ts'
import { okay, startUpstream } from '../../../test/upstreams/raw-upstream.ts'
import { createResolve, type Resolve } from './resolve.ts'

const PROOF = 'outbound'
const canary = await startCanary()
/** Global, and given to nobody: where a connection to it is tried, it reaches no one. */
const PUBLIC = '2d00::1'
const UNREACHABLE = 'The address could not be reached over the public internet.'

/** A client to which the canary's port is as good as 443, so that nothing but the address keeps it away. */
const startAt = ({ port }: Canary, resolve: Resolve) =>
  startOutbound({
    resolve,
    limits: {
      ports: [443, port],
      deadlines: { connectMs: 300, headersMs: 300, idleMs: 300, totalMs: 500 },
    },
  })

/** Of an error and those that it came from. */
function textOf(error: unknown): string {
  return error instanceof Error ? `${error.message} ${textOf(error.cause)}` : ''
}

const HIDDEN = Object.values(PRIVATE_ADDRESSES).flat()

/** How URLs are refused by a client to which every name leads to this machine; nobody came to the canary. */
async function refusalsOf(urls: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const outbound = startAt(canary, async () => ['127.0.0.1', '::1'])
  const reasons: Record<string, number> = {}
  for (const url of urls) {
    const { reason, message } = await failureOf(outbound.send(get(url)), url)
    assert.ok(reason === 'url' || reason === 'unreachable', `${reason} for ${url}`)
    if (reason === 'unreachable') assert.equal(message, UNREACHABLE, 'nobody is told why')
    reasons[reason] = (reasons[reason] ?? 0) + 1
  }
  assert.equal(canary.connects(), 0)
  return reasons
}

describe('a URL of a stranger', () => {
  it('would be seen at the canary if it came there', async () => {
    const seen = await startCanary()
    const origin = `http://127.0.0.1:${seen.port}`
    const outbound = startOutbound({ allowedOrigins: [origin] })
    assert.equal(String((await outbound.send(get(`${origin}/`))).body), 'caught')
    assert.equal(await (await fetch(`http://[::1]:${seen.port}`)).text(), 'caught')
    assert.equal(seen.connects(), 2)
  })

  it('leads to no connection to this machine, however it is written', async () => {
    const urls = [
      ...HOSTILE_HOSTS.flatMap((host) => hostileUrlsOf(host, canary.port)),
      ...otherSchemes(canary.port),
      ...hostileUrls(canary.port),
      `https://${'a'.repeat(64)}.example:${canary.port}/`,
      `https://${'a.'.repeat(130)}example:${canary.port}/`,
      `https://a.example:${canary.port}/${'a'.repeat(4_096)}`,
    ]
    const reasons = await refusalsOf(urls)
    assert.ok((reasons.unreachable ?? 0) > 50, `many are refused for where they lead alone: ${JSON.stringify(reasons)}`)
    recordProof(PROOF, 'URLs of strangers', { urls: urls.length, ...reasons, connects: canary.connects() })
  })

  it('leads to no address that is not public', async () => {
    const urls = HIDDEN.flatMap((address) =>
      hostileUrlsOf(address.includes(':') ? `[${address}]` : address, canary.port),
    )
    const reasons = await refusalsOf(urls)
    recordProof(PROOF, 'addresses that are not public', { urls: urls.length, ...reasons, connects: canary.connects() })
  })
})

describe('a name of a stranger', () => {
  const url = (name: string) => `https://${name}.example:${canary.port}/`

  it('is not asked where it leads to an address that is not public, alone or among others', async () => {
    let resolved = 0
    const table = new Map<string, readonly string[]>()
    for (const [at, address] of [...HIDDEN, 'fe80::1%lo', '2d00::1%lo', '', 'localhost', '127.1'].entries()) {
      table.set(`alone${at}.example`, [address])
      table.set(`first${at}.example`, [address, PUBLIC])
      table.set(`last${at}.example`, [PUBLIC, '2d00::2', address])
    }
    table.set('none.example', [])
    table.set(
      'many.example',
      Array.from({ length: 1_000 }, () => PUBLIC),
    )
    const outbound = startAt(canary, async (name) => {
      resolved += 1
      return table.get(name) ?? assert.fail(name)
    })
    for (const name of table.keys()) {
      const failure = await failureOf(outbound.send(get(url(name.replace('.example', '')))), name)
      assert.deepEqual([failure.reason, failure.message], ['unreachable', UNREACHABLE])
    }
    assert.deepEqual([resolved, canary.connects()], [table.size, 0])
    recordProof(PROOF, 'names that lead to what is not public', { names: table.size, connects: canary.connects() })
  })

  it('is not asked where one of its addresses is of this machine, whatever the others are', async () => {
    const answers = [
      [PUBLIC, '127.0.0.1'],
      ['127.0.0.1', PUBLIC],
      [PUBLIC, '::1', '2d00::2'],
    ]
    for (const addresses of answers) {
      const outbound = startAt(canary, async () => addresses)
      assert.equal((await failureOf(outbound.send(get(url('mixed'))))).reason, 'unreachable')
    }
    assert.equal(canary.connects(), 0)
  })

  it('is not asked where it leads into a network that the operator has named as its own', async () => {
    // As a translator of the operator's own would have this machine, or a machine inside with a global address.
    const inside = '2d00:64::7f00:1'
    const outbound = startOutbound({
      resolve: async () => [inside],
      refusedNetworks: ['2d00:64::/96'],
      limits: { ports: [443, canary.port] },
    })
    const told = [
      await failureOf(outbound.send(get(url('inside')))),
      await failureOf(outbound.send(get(`https://[${inside}]:${canary.port}/`))),
    ]
    for (const { reason, message, cause } of told) {
      assert.deepEqual([reason, message], ['unreachable', UNREACHABLE])
      assert.match(textOf(cause), /the operator's own network/)
    }
    assert.equal(canary.connects(), 0)
  })

  it('is resolved once for a connection: what it leads to a moment later is never asked', async () => {
    const asked: string[] = []
    const outbound = startAt(canary, async (name) => {
      asked.push(name)
      return asked.length % 2 === 1 ? [PUBLIC] : ['127.0.0.1', '::1']
    })
    const failure = await failureOf(outbound.send(get(url('rebinding'))))
    assert.equal(failure.reason, 'unreachable')
    assert.deepEqual([asked, canary.connects()], [['rebinding.example'], 0])
    // The next request resolves anew, and is refused for what it finds.
    await failureOf(outbound.send(get(url('rebinding'))))
    assert.deepEqual([asked.length, canary.connects()], [2, 0])
  })

  it('that is resolved too late, or never, is not asked', async () => {
    const late = Promise.withResolvers<readonly string[]>()
    const outbound = startAt(canary, () => late.promise)
    const { reason, message } = await failureOf(outbound.send(get(url('late'))))
    assert.deepEqual([reason, message], ['unreachable', UNREACHABLE])
    late.resolve([PUBLIC])
    await outbound.close()
    assert.equal(canary.connects(), 0)
  })

  it('that does not exist looks like one that is refused', async () => {
    const { server, asked } = await startNameServer((name) => (name === 'home.example' ? ['127.0.0.1'] : undefined))
    const outbound = startAt(canary, createResolve({ servers: [server] }))
    const told = []
    for (const name of ['home', 'nowhere']) {
      const { reason, message } = await failureOf(outbound.send(get(url(name))))
      told.push({ reason, message })
    }
    assert.deepEqual(told[0], told[1])
    assert.deepEqual(asked.toSorted(), [
      'A home.example',
      'A nowhere.example',
      'AAAA home.example',
      'AAAA nowhere.example',
    ])
    assert.equal(canary.connects(), 0)
  })

  it('has all its addresses resolved, of both families, by name servers alone', async () => {
    const { server } = await startNameServer((name, type) => {
      if (name === 'both.example') return type === 'A' ? ['192.0.2.1', '192.0.2.2'] : ['2001:db8::1']
      return type === 'AAAA' && name === 'six.example' ? ['2001:db8::2'] : undefined
    })
    const resolve = createResolve({ servers: [server] })
    assert.deepEqual((await resolve('both.example')).toSorted(), ['192.0.2.1', '192.0.2.2', '2001:db8::1'])
    assert.deepEqual(await resolve('six.example'), ['2001:db8::2'])
    await assert.rejects(resolve('localhost'), { code: 'ENOTFOUND' })
  })
})

describe('a redirect', () => {
  it('is not followed, wherever it leads', async () => {
    const places = [
      `http://127.0.0.1:${canary.port}/`,
      `https://127.0.0.1:${canary.port}/`,
      '/elsewhere',
      '//a.example/',
    ]
    let place = ''
    let status = 0
    const upstream = await startUpstream(({ socket }) => {
      socket.write(
        `HTTP/1.1 ${status} Elsewhere\r\nlocation: ${place}\r\nrefresh: 0;url=${place}\r\ncontent-length: 0\r\n\r\n`,
      )
    })
    const outbound = startOutbound({ allowedOrigins: [upstream.url, `http://127.0.0.1:${canary.port}`] })
    for (place of places)
      for (status of [300, 301, 302, 303, 307, 308])
        assert.equal((await failureOf(outbound.send(get(`${upstream.url}/start`)))).reason, 'redirect')
    assert.deepEqual([upstream.received.length, canary.connects()], [places.length * 6, 0])
    recordProof(PROOF, 'redirects', { answers: upstream.received.length, connects: canary.connects() })
  })

  it('is no redirect where it is a success that names a place', async () => {
    const upstream = await startUpstream(({ socket }) => {
      socket.write(okay('made', `location: http://127.0.0.1:${canary.port}/`))
    })
    const outbound = startOutbound({ allowedOrigins: [upstream.url] })
    assert.equal(String((await outbound.send(get(upstream.url))).body), 'made')
    assert.equal(canary.connects(), 0)
  })
})
