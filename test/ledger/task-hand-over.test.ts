import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { connect, holdOf, ids, makeAccount, makeCredential } from './world.ts'

const database = await freshDatabase()
const { pools, calls } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const UPSTREAM = { id: ids.next(), name: 'video', slot: 'video', mode: 'live' } as const

/** A task that is being created, and how it stands. */
async function begin(): Promise<Id> {
  const accountId = await makeAccount(pool, 100n)
  const [id, credentialId] = [ids.next(), await makeCredential(pool, accountId)]
  const task = { model: 'a/model', prompt: Buffer.from('sealed') }
  const of = { id, accountId, credentialId, operation: 'video_synthesis', tokens: 0, windows: [], claims: [] }
  assert.equal((await calls.begin({ ...of, hold: holdOf(60n), task })).outcome, 'begun')
  return id
}

/** As an operator does, who may correct a name. */
async function attach(id: Id, name: string): Promise<string> {
  const { rows } = await pool.query<{ outcome: string }>(
    "select hand_over_task($1, $2, 'video', 'live', $3, 'PENDING', 0, true) as outcome",
    [id, UPSTREAM.id, name],
  )
  return rows[0]?.outcome ?? ''
}

async function standing(id: Id) {
  const { rows } = await pool.query<{ state: string; scheduled: boolean; unsettled: boolean }>(
    `select state, scheduled_at is not null as scheduled, unsettled_at is not null as unsettled
     from tasks join holds using (id) where id = $1`,
    [id],
  )
  return rows[0]
}

const RUNNING = { state: 'RUNNING', scheduled: true, unsettled: false }

describe('a task that runs', () => {
  it('does not wait again where an operator says its name once more', async () => {
    const id = await begin()
    assert.equal(await calls.handOver({ id, upstream: UPSTREAM, name: `job-${id}`, state: 'RUNNING' }), true)
    assert.equal(await attach(id, `job-${id}`), 'done')
    assert.deepEqual(await standing(id), RUNNING)
  })

  it('runs also where an operator said its name before the process that created it', async () => {
    const id = await begin()
    assert.equal(await attach(id, `job-${id}`), 'done')
    assert.equal((await standing(id))?.state, 'PENDING')
    assert.equal(await calls.handOver({ id, upstream: UPSTREAM, name: `job-${id}`, state: 'RUNNING' }), true)
    assert.deepEqual(await standing(id), RUNNING)
  })

  it('is not known as that while another name stands', async () => {
    const id = await begin()
    assert.equal(await attach(id, `other-${id}`), 'done')
    assert.equal(await calls.handOver({ id, upstream: UPSTREAM, name: `job-${id}`, state: 'RUNNING' }), false)
    assert.equal((await standing(id))?.state, 'PENDING')
  })

  it('is not taken for an orphan by a sweep that chose it before it was handed over', async () => {
    const id = await begin()
    await calls.handOver({ id, upstream: UPSTREAM, name: `job-${id}`, state: 'RUNNING' })
    const { rowCount } = await pool.query('select id from mark_unsettled($1, null)', [[id]])
    assert.equal(rowCount, 0)
    assert.deepEqual(await standing(id), RUNNING)
  })
})
