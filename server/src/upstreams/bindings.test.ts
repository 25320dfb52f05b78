import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import { judge } from '../../../harness/figures.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { post, startTransport } from '../../../test/upstreams/asking.ts'
import { okay, startUpstream } from '../../../test/upstreams/raw-upstream.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createIds } from '../kernel/ids.ts'
import { createSeal, type Seal } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import { createChangeFeed } from '../storage/change-feed.ts'
import { createPools } from '../storage/pools.ts'
import { silentLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createBindings } from './bindings.ts'
import { listUpstreams, removeUpstream, saveUpstream, type UpstreamSettings } from './configure.ts'

const PROOF = 'bindings'

const { url } = await freshDatabase()
const pools = createPools({ url: new Secret(url), log: silentLog })
const pool = pools.rest
const seal = createSeal({ current: new Secret(randomBytes(32).toString('base64')) })
const parts = { pool, seal, ids: createIds({ clock: systemClock }) }
const CREDENTIAL = 'sk-canary-31f9'

/** Bindings as one process sees them. */
function startProcess(own: Seal | null = seal) {
  const metrics = createMetrics()
  const errors: unknown[] = []
  const feed = createChangeFeed({ url: new Secret(url), log: silentLog, clock: systemClock, metrics })
  const log = { error: (_: string, fields?: unknown) => errors.push(fields) }
  const bindings = createBindings({ pool, feed, clock: systemClock, metrics, seal: own, log })
  feed.start()
  after(() => feed.close())
  return { ...bindings, errors, feed }
}
after(() => pools.close())

let slots = 0
function settings(changes: Partial<UpstreamSettings> = {}): UpstreamSettings {
  return { slot: `slot-${slots++}`, mode: 'live', baseUrl: 'https://api.example.com/v1', kind: 'native', ...changes }
}

const eventually = (check: () => Promise<boolean>) => until(check, PATIENCE_MS, 'the change')

describe('upstreams', () => {
  it('are found by slot and mode, the first to be asked at the front, without those that are disabled', async () => {
    const { slot } = settings()
    const own = {
      slot,
      segments: { social_a: 'vendor-word' },
      weight: 3,
      requestsPerMinute: 600,
      credential: new Secret(CREDENTIAL),
    }
    const second = await saveUpstream(parts, settings({ slot, priority: 5 }))
    const first = await saveUpstream(parts, settings({ ...own, kind: 'managed' }))
    await saveUpstream(parts, settings({ slot, enabled: false }))
    const other = await saveUpstream(parts, settings({ slot, mode: 'test', baseUrl: 'http://127.0.0.1:9000' }))
    const { find } = startProcess()
    const found = await find(slot, 'live')
    assert.deepEqual(
      found.map(({ id }) => id),
      [first, second],
    )
    assert.equal(found[0]?.credential?.reveal(), CREDENTIAL)
    assert.deepEqual(
      { ...found[0], credential: null },
      {
        id: first,
        slot,
        name: `${slot}@api.example.com`,
        mode: 'live',
        baseUrl: 'https://api.example.com/v1',
        kind: 'managed',
        credential: null,
        segments: { social_a: 'vendor-word' },
        weight: 3,
        requestsPerMinute: 600,
        enabled: true,
        client: null,
      },
    )
    assert.deepEqual(
      (await find(slot, 'test')).map(({ id }) => id),
      [other],
    )
    assert.deepEqual(await find('nothing', 'live'), [])
  })

  it('are asked as they are now, on every process, within a second of any change and without a restart', async () => {
    const processes = [startProcess(), startProcess()]
    const given = settings({ credential: new Secret('first') })
    const seen = (wanted: string) => async () =>
      (await Promise.all(processes.map(({ find }) => find(given.slot, 'live')))).every(
        (found) => found.map(({ credential, weight }) => `${credential?.reveal()} ${weight}`).join() === wanted,
      )
    assert.ok(await seen('')())
    await eventually(async () => processes.every(({ feed }) => feed.lagMs() < 1_000))
    const id = await saveUpstream(parts, given)
    const times = [await eventually(seen('first 1'))]
    await saveUpstream(parts, { ...given, id, weight: 2 })
    times.push(await eventually(seen('first 2')))
    await saveUpstream(parts, { ...given, id, credential: new Secret('second') })
    times.push(await eventually(seen('second 1')))
    // By hand, past everything that we wrote.
    await pool.query('update upstreams set weight = 7 where id = $1', [id])
    times.push(await eventually(seen('second 7')))
    await saveUpstream(parts, { ...given, id, slot: `${given.slot}-moved` })
    times.push(await eventually(seen('')))
    await saveUpstream(parts, { ...given, id, credential: null })
    times.push(await eventually(seen('undefined 1')))
    await removeUpstream(parts, id)
    times.push(await eventually(seen('')))
    judge(PROOF, 'from a change to its effect', { unit: 'ms', atMost: 1_000 }, times)
  })

  it('keep calls that are under way where they are', async () => {
    const old = await startUpstream(({ socket }) => void delay(600).then(() => socket.write(okay('old'))))
    const next = await startUpstream(({ socket }) => socket.write(okay('next')))
    const { find } = startProcess()
    const transport = startTransport()
    const given = settings({ baseUrl: old.url })
    const id = await saveUpstream(parts, given)
    const ask = async () => {
      const [binding] = await find(given.slot, 'live')
      if (binding === undefined) throw new Error('none')
      return String((await transport.send(post(binding.baseUrl, { upstream: binding }))).body)
    }
    const call = ask()
    while (old.received.length === 0) await delay(5)
    await saveUpstream(parts, { ...given, id, baseUrl: next.url })
    await eventually(async () => (await find(given.slot, 'live'))[0]?.baseUrl === next.url)
    assert.equal(await ask(), 'next')
    assert.equal(await call, 'old')
  })
})

describe('the credential of an upstream', () => {
  const dump = async () => JSON.stringify((await pool.query('select upstreams::text as text from upstreams')).rows)

  it('can be read neither in the table, nor in a list, nor in a binding that is printed', async () => {
    const given = settings({ credential: new Secret(CREDENTIAL) })
    const id = await saveUpstream(parts, given)
    const text = await dump()
    for (const form of [
      CREDENTIAL,
      Buffer.from(CREDENTIAL).toString('hex'),
      Buffer.from(CREDENTIAL).toString('base64'),
    ])
      assert.ok(!text.includes(form))
    const [listed] = await listUpstreams(parts, given.slot)
    assert.deepEqual([listed?.id, listed?.hasCredential, listed?.kind], [id, true, 'native'])
    assert.equal(listed?.requestsPerMinute, null)
    const found = await startProcess().find(given.slot, 'live')
    for (const shown of [listed, found])
      assert.ok(!`${inspect(shown, { depth: null })}${JSON.stringify(shown)}`.includes('canary'))
  })

  it('is nobody else’s: moved to another row or another address it does not open', async () => {
    const given = settings({ credential: new Secret(CREDENTIAL) })
    const id = await saveUpstream(parts, given)
    const thief = settings()
    const thiefId = await saveUpstream(parts, thief)
    await pool.query(
      'update upstreams set credential = (select credential from upstreams where id = $1) where id = $2',
      [id, thiefId],
    )
    const { find, errors } = startProcess()
    assert.deepEqual(await find(thief.slot, 'live'), [])
    await pool.query(`update upstreams set base_url = 'https://evil.example/v1' where id = $1`, [id])
    assert.deepEqual(await find(given.slot, 'live'), [])
    assert.equal(errors.length, 2)
    assert.ok(!inspect(errors, { depth: null }).includes('canary'))
    assert.match(inspect(errors), /changed since it was sealed, or was sealed for something else/)
  })

  it('stays when it is left out, and has to be given again for another address', async () => {
    const given = settings({ credential: new Secret(CREDENTIAL) })
    const { credential: _, ...rest } = given
    const id = await saveUpstream(parts, given)
    await saveUpstream(parts, { ...rest, id, baseUrl: 'https://api.example.com/v2' })
    assert.equal((await startProcess().find(given.slot, 'live'))[0]?.credential?.reveal(), CREDENTIAL)
    await assert.rejects(saveUpstream(parts, { ...rest, id, baseUrl: 'https://other.example.com/v1' }), /Give it again/)
    await saveUpstream(parts, { ...rest, id, baseUrl: 'https://other.example.com/v1', credential: new Secret('new') })
    assert.equal((await startProcess().find(given.slot, 'live'))[0]?.credential?.reveal(), 'new')
  })

  it('can’t be kept or used without a master key; an upstream without one can', async () => {
    await assert.rejects(
      saveUpstream({ ...parts, seal: null }, settings({ credential: new Secret(CREDENTIAL) })),
      /FAREBOX_SECRETS_MASTER_KEY/,
    )
    const { slot } = settings()
    const bare = await saveUpstream({ ...parts, seal: null }, settings({ slot, priority: 9 }))
    await saveUpstream(parts, settings({ slot, credential: new Secret(CREDENTIAL) }))
    for (const own of [null, createSeal({ current: new Secret(randomBytes(32).toString('base64')) })]) {
      const { find, errors } = startProcess(own)
      assert.deepEqual(
        (await find(slot, 'live')).map(({ id }) => id),
        [bare],
      )
      assert.match(inspect(errors), own === null ? /There is no master key/ : /neither the current nor the previous/)
    }
  })
})

describe('saving an upstream', () => {
  const refused: Readonly<Record<string, readonly [Partial<UpstreamSettings>, RegExp]>> = {
    'an address that is none': [{ baseUrl: 'api.example.com' }, /must be a URL/],
    'plain http to another machine': [{ baseUrl: 'http://api.example.com' }, /must be https/],
    'a slot with a space': [{ slot: 'a b' }, /slot/],
    'a word with a slash': [{ segments: { social_a: 'a/../b' } }, /segments\.social_a: must be one segment/],
    'a word that leads up': [{ segments: { social_a: '..' } }, /must be one segment/],
    'a credential of two lines': [{ credential: new Secret('canary\ncanary') }, /credential: must be one line/],
    'no weight': [{ weight: 0 }, /weight/],
    'a quota of nothing': [{ requestsPerMinute: 0 }, /requestsPerMinute/],
  }
  for (const [what, [changes, expected]] of Object.entries(refused))
    it(`refuses ${what}, and leaves nothing behind`, async () => {
      const given = settings(changes)
      await assert.rejects(
        saveUpstream(parts, given),
        (error) => error instanceof Fault && expected.test(error.message),
      )
      assert.deepEqual(await listUpstreams(parts, given.slot), [])
    })

  it('takes plain http to another machine where that is allowed', async () => {
    await saveUpstream({ ...parts, allowPlainHttp: true }, settings({ baseUrl: 'http://10.0.0.1' }))
  })

  it('refuses to change or remove what is not there', async () => {
    const id = parts.ids.next()
    await assert.rejects(saveUpstream(parts, settings({ id })), /There is no upstream/)
    await assert.rejects(removeUpstream(parts, id), /There is no upstream/)
  })
})
