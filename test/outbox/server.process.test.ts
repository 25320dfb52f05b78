import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { notesTo, statesIn, write } from './notes.ts'
import { startReceiver } from './receiver.ts'

const database = await freshDatabase()
const pool = new pg.Pool({ connectionString: database.url, max: 2 })
// Its database is dropped before it is closed.
pool.on('error', () => {})
after(() => pool.end())

/** Who is told notes at /fine, and has gone from /gone for good. */
const receiver = await startReceiver(({ url, answer }) => void answer.writeHead(url === '/gone' ? 410 : 204).end())
const server = await startGateway({
  databaseUrl: database.url,
  changes: 'test/outbox/delivering-server.ts',
  env: {
    FAREBOX_ROLES: 'worker,admin',
    FAREBOX_LOG_LEVEL: 'silent',
    FAREBOX_OUTBOUND_ALLOWED_ORIGINS: receiver.url,
  },
})
after(() => server.stop())

describe('a server that delivers', () => {
  it('tells how many messages were delivered, wait and are dead', async () => {
    await write(pool, [
      ...notesTo(`${receiver.url}/fine`, 3),
      ...notesTo(`${receiver.url}/gone`, 2),
      // In no list of the operator, and not public: it is tried again and again.
      ...notesTo('http://127.0.0.1:1/', 1),
    ])
    const isOver = async () => {
      const { delivered, dead } = await statesIn(pool)
      return delivered === 3 && dead === 2
    }
    await until(isOver, PATIENCE_MS, 'the end of all that can end')
    const expected = [
      'farebox_outbox_waiting{kind="test.note"} 1',
      'farebox_outbox_dead{kind="test.note"} 2',
      'farebox_outbox_deliveries_total{kind="test.note",outcome="delivered"} 3',
      'farebox_outbox_deliveries_total{kind="test.note",outcome="died"} 2',
      'farebox_outbound_requests_total{outcome="answered"} 5',
    ]
    const lines = async () => (await (await fetch(`${server.adminUrl}/metrics`)).text()).split('\n')
    const areTold = async () => {
      const told = await lines()
      return expected.every((line) => told.includes(line))
    }
    await until(areTold, PATIENCE_MS, expected.join(', '))
    assert.ok((await lines()).some((line) => /^farebox_outbox_oldest_seconds\{kind="test\.note"\} \d/.test(line)))
  })
})
