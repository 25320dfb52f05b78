import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { z } from 'zod'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { startShell } from '../../house/command-shell.ts'
import { makeCustomer, startInstallation } from '../installation.ts'
import { created, stored, untilStored } from './video.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey } = installation
after(installation.stop)
const { farebox, said } = startShell({
  ...process.env,
  FAREBOX_DATABASE_URL: database.url,
  FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
})

const made = z.object({ tasks: z.array(z.object({ task_id: z.string(), request_id_of_create: z.string() })) })

/** The name that the sandbox gave to a task of ours. */
async function nameThere(id: string): Promise<string> {
  const { tasks } = made.parse(await (await fetch(`${sandbox.url}/control/video/tasks`)).json())
  return tasks.find((one) => one.request_id_of_create === id)?.task_id ?? ''
}

async function upstreamId(slot: string): Promise<string> {
  return (await pool.query('select id from upstreams where slot = $1', [slot])).rows[0].id
}

describe('farebox tasks', () => {
  it('says that none is open', async () => {
    assert.equal(await said('tasks', 'status'), 'There are no open tasks.\n')
  })

  it('shows a task whose creation was lost, and lets it go on once somebody knows its name', async () => {
    const { secret } = await makeCustomer(pool)
    const id = await created(url, secret, {
      words: 'sandbox:close-early',
      parameters: { duration: 5, resolution: '720P' },
    })
    assert.equal((await stored(pool, id)).is_unsettled, true)
    const status = await said('tasks', 'status')
    assert.match(status, /^Open: 1 CREATING\.$/m)
    assert.match(status, new RegExp(`^${id}  sandbox/video`, 'm'))

    const upstream = await upstreamId('video')
    const attach = (...more: readonly string[]) => farebox('tasks', 'attach', id, ...more)
    assert.equal((await attach('--upstream', crypto.randomUUID(), '--name', 'a')).code, 1)
    assert.equal((await attach('--upstream', upstream, '--name', 'a b')).code, 1)
    const name = await nameThere(id)
    assert.equal(
      await said('tasks', 'attach', id, '--upstream', upstream, '--name', name),
      `Task ${id} is attached, and polled as ${name}.\n`,
    )
    const row = await untilStored(pool, id, 'SUCCEEDED')
    assert.equal(row.charged, 500_000_000n)
    const late = await attach('--upstream', upstream, '--name', name)
    assert.equal(late.code, 1)
    assert.match(late.output, /has already ended/)
  })

  it('keeps an upstream that has tasks, and corrects a name that was written wrong', async () => {
    const { secret } = await makeCustomer(pool)
    const id = await created(url, secret, { words: 'sandbox:close-early' })
    const upstream = await upstreamId('video')
    const name = await nameThere(id)
    await said('tasks', 'attach', id, '--upstream', upstream, '--name', `${name}-not`)
    const kept = await farebox('upstreams', 'remove', upstream)
    assert.equal(kept.code, 1)
    assert.match(kept.output, /has open tasks or linked accounts/)
    assert.match(await said('upstreams', 'off', upstream), /it gets no new calls/)
    await said('tasks', 'attach', id, '--upstream', upstream, '--name', name)
    // One that is off is asked for what it has.
    await untilStored(pool, id, 'SUCCEEDED')
    await said('upstreams', 'on', upstream)
  })

  it('leaves it to farebox ledger resolve to end one that was never made', async () => {
    const { secret } = await makeCustomer(pool)
    const id = await created(url, secret, { words: 'sandbox:close-early' })
    assert.match(await said('ledger', 'resolve', id, '--void'), /is voided/)
    const row = await stored(pool, id)
    assert.deepEqual([row.state, row.held, row.charged, row.slots], ['FAILED', null, 0n, 0])
  })
})
