import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type Gateway, startGateway } from '../../../harness/gateways.ts'
import { count, recordProof } from '../../../harness/proof.ts'
import { startSandbox } from '../../../harness/sandbox.ts'
import { bindSandbox, makeMasterKey } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { until } from '../../../harness/until.ts'
import { SEALED_IN_TASKS } from '../../../server/src/gateway/plans/video-tasks.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import type { Secret } from '../../../server/src/kernel/secret.ts'
import { VERIFIERS } from '../../../server/src/links/attempts.ts'
import { TOKEN_KEYS } from '../../../server/src/links/tokens.ts'
import { CREDENTIALS } from '../../../server/src/upstreams/credential.ts'
import { startShell } from '../../house/command-shell.ts'
import { connect } from '../../ledger/world.ts'
import { type Customer, call, chargesOf, makeCustomer } from '../installation.ts'
import { created, outputOf, poll, untilState } from '../tasks/video.ts'
import { CALLBACK, confirm, decide, FOLLOW, linkAccount, open, startLink } from './linking.ts'
import { platformOf } from './sandbox-platform.ts'

const ROTATIONS = count({ full: 5, reduced: 1 })
const PROCESSES = 2
const WRITERS = count({ full: 8, reduced: 4 })
const PAUSE_MS = 100
/** A connection that waits to be accepted when a process stops listening is reset. */
const DRAIN_PAUSE_MS = 1_000
/** We refresh what has half a minute left, so that such a session is refreshed every second. */
const TOKEN_SECONDS = 31
/** Longer than that nobody waits for a few refreshes. */
const ROLL_MS = 60_000
const PRICE = 5_000_000n
const ALL = [CREDENTIALS, TOKEN_KEYS, VERIFIERS, ...SEALED_IN_TASKS]

type Keys = { readonly current: Secret; readonly other?: Secret }

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const sandbox = await startSandbox()
const platform = platformOf(sandbox.url)
/** Undefined while one is out of rotation. */
const processes: (Gateway | undefined)[] = []
after(async () => {
  await Promise.all([...processes.map((gateway) => gateway?.stop()), sandbox.stop()])
  await pools.close()
})

const envOf = ({ current, other }: Keys) => ({
  FAREBOX_SECRETS_MASTER_KEY: current.reveal(),
  ...(other !== undefined && { FAREBOX_SECRETS_PREVIOUS_MASTER_KEY: other.reveal() }),
})

const start = (keys: Keys) =>
  startGateway({
    databaseUrl: database.url,
    env: {
      FAREBOX_LINKS_OFFLINE_ACCESS: 'true',
      FAREBOX_LOG_LEVEL: 'warn',
      FAREBOX_HTTP_DRAIN_PAUSE_MS: String(DRAIN_PAUSE_MS),
      ...envOf(keys),
    },
  })

const anyUrl = () => processes.find((gateway) => gateway !== undefined)?.url ?? ''

/** Restarts one process after the other with other keys, while the others serve. */
async function roll(keys: Keys): Promise<void> {
  for (let at = 0; at < PROCESSES; at += 1) {
    // As a balancer does: nobody is sent there any more, and who is on the way is still let in.
    const leaving = processes[at]
    processes[at] = undefined
    await leaving?.stop()
    processes[at] = await start(keys)
    // Old and new ones serve beside each other for a while: every session is refreshed, by either, and written with by both.
    const { refreshes } = await platform.summary()
    await until(
      async () => (await platform.summary()).refreshes >= refreshes + WRITERS,
      ROLL_MS,
      'refreshes of every session',
    )
  }
}

// A balancer between us and them would open a connection for each of ours.
const connections = new Agent({ pipelining: 0 })
after(() => connections.close())

/** Asks the processes in turn, of those that are in rotation. */
async function write(secret: string, turn: number): Promise<{ readonly status: number; readonly text: string }> {
  const { statusCode: status, body } = await request((processes[turn % PROCESSES]?.url ?? anyUrl()) + FOLLOW, {
    method: 'POST',
    dispatcher: connections,
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: '{"target_user_id": "77"}',
  })
  return { status, text: await body.text() }
}

/** Writes of all of them at a steady rate, until it is told to stop; what did not succeed. */
function startWrites(customers: readonly Customer[]) {
  const failed: string[] = []
  const stopped = new AbortController()
  let done = 0
  const writing = customers.map(async ({ secret }, number) => {
    for (let turn = number; !stopped.signal.aborted; turn += 1) {
      const { status, text } = await write(secret, turn).catch((error: Error) => ({ status: 0, text: String(error) }))
      done += 1
      if (status !== 200) failed.push(`${status} ${text}`)
      await delay(PAUSE_MS)
    }
  })
  return {
    failed,
    done: () => done,
    async stop() {
      stopped.abort()
      await Promise.all(writing)
    },
  }
}

/** How many values are sealed in each column, and how many of them not with this key. */
async function sealedBy(key: Secret) {
  const seal = createSeal({ current: key })
  const all: Record<string, { sealed: number; old: number }> = {}
  for (const { what, table, column } of ALL) {
    const { rows } = await pool.query<{ value: Buffer }>(
      `select ${column} as value from ${table} where ${column} is not null`,
    )
    all[what] = { sealed: rows.length, old: rows.filter(({ value }) => !seal.isCurrent(value)).length }
  }
  return all
}

/** What was begun under the key before: a link that nobody has decided on yet, and a video that is made. */
async function begin() {
  const [undecided, maker] = [await makeCustomer(pool), await makeCustomer(pool)]
  const { json } = await startLink(anyUrl(), undecided.secret)
  const task = await created(anyUrl(), maker.secret, { words: 'at night' })
  await untilState(anyUrl(), maker.secret, task, 'SUCCEEDED')
  return {
    async finish() {
      // Our processes have other ports now, which nobody would see behind a balancer.
      const { search } = new URL(await decide(String(json.auth_url)))
      const page = await confirm(anyUrl(), await open(anyUrl() + CALLBACK + search))
      assert.equal(page.status, 200, page.text)
      assert.equal((await write(undecided.secret, 0)).status, 200)
      const video = outputOf(await poll(anyUrl(), maker.secret, task))
      assert.equal(video.orig_prompt, 'a fox in the snow at night')
      assert.match(String(video.video_url), /^http/)
      assert.equal((await call(anyUrl(), maker.secret, 'rerank')).status, 200)
    },
  }
}

describe('a new master key while everything runs', () => {
  it('LINK-7 fails no write, though sessions are refreshed all the time, and leaves nothing under the key before', async (test) => {
    let current = makeMasterKey()
    await bindSandbox({ pool, masterKey: current, sandboxUrl: sandbox.url })
    for (let at = 0; at < PROCESSES; at += 1) processes.push(await start({ current }))
    await platform.turn({ access_token_seconds: TOKEN_SECONDS, follow_limit: 1_000_000 })
    const customers = await Promise.all(
      Array.from({ length: WRITERS }, () => makeCustomer(pool, { money: 100_000n * PRICE })),
    )
    for (const [number, { secret }] of customers.entries()) await linkAccount(anyUrl(), secret, `writer_${number}`)
    const writes = startWrites(customers)
    let resealed = 0

    for (let round = 0; round < ROTATIONS; round += 1) {
      const begun = await begin()
      const next = makeMasterKey()
      // First everybody can open what is sealed with the new key; only then does anybody seal with it.
      await roll({ current, other: next })
      await roll({ current: next, other: current })
      const shell = startShell({
        ...process.env,
        FAREBOX_DATABASE_URL: database.url,
        ...envOf({ current: next, other: current }),
      })
      const output = await shell.said('secrets', 'rotate')
      for (const [, number] of output.matchAll(/^(\d+) /gm)) resealed += Number(number)
      for (const [what, { sealed, old }] of Object.entries(await sealedBy(next))) {
        assert.ok(sealed > 0, `there are ${what}`)
        assert.equal(old, 0, what)
      }
      await roll({ current: next })
      await begun.finish()
      current = next
      assert.deepEqual(writes.failed.slice(0, 3), [])
    }

    await writes.stop()
    assert.deepEqual(writes.failed.slice(0, 3), [])
    const { refreshes, refresh_reuses, failed_refreshes, follows } = await platform.summary()
    assert.deepEqual([refresh_reuses, failed_refreshes], [0, 0])
    assert.ok(refreshes > WRITERS, 'sessions were refreshed meanwhile')
    const charges = (await Promise.all(customers.map(({ accountId }) => chargesOf(pool, accountId)))).flatMap((all) => [
      ...all.values(),
    ])
    assert.ok(charges.every((amount) => amount === PRICE))
    assert.equal(charges.length, writes.done())
    const shown = {
      ...{ rotations: ROTATIONS, processes: PROCESSES, writes: writes.done(), failed: 0, charges: charges.length },
      ...{ follows, refreshes, refresh_reuses, resealed, under_an_old_key: 0 },
    }
    test.diagnostic(JSON.stringify(shown))
    recordProof('links-rotation', 'a new master key under load', shown)
  })
})
