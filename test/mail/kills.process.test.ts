import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { type Gateway, startGateways } from '../../harness/gateways.ts'
import { startBareSandbox } from '../../harness/sandbox.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { createSendMail, type Mail } from '../../server/src/storage/mail.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { inTransaction } from '../../server/src/storage/transaction.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { letTimePass, statesIn } from '../outbox/notes.ts'
import { LETTERS } from './letters.ts'

/** The whole way of a letter: a transaction, the outbox, a worker's process, SMTP, and what a reader of mail makes of it. */
const PEOPLE = 40
const WORKERS = 2
const UNACKNOWLEDGED = 4

const masterKey = makeMasterKey()
const database = await freshDatabase()
const { rest: pool, close } = createPools({ url: new Secret(database.url), log: silentLog })
const sandbox = await startBareSandbox({ smtpPort: 0 })
const workers: Gateway[] = await startGateways(WORKERS, {
  databaseUrl: database.url,
  env: {
    FAREBOX_ROLES: 'worker',
    FAREBOX_LOG_LEVEL: 'silent',
    FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
    FAREBOX_MAIL_URL: sandbox.smtpUrl ?? '',
    FAREBOX_MAIL_FROM: 'Farebox <no-reply@farebox.example>',
  },
})
after(async () => {
  await Promise.all(workers.map((worker) => worker.stop()))
  await sandbox.stop()
  await close()
})

const sendMail = createSendMail({ ids: createIds({ clock: systemClock }), seal: createSeal({ current: masterKey }) })

async function send(mail: Mail, isRolledBack = false): Promise<void> {
  const rollback = new Error('rolled back')
  await inTransaction(pool, async (query) => {
    await sendMail(query, mail)
    if (isRolledBack) throw rollback
  }).catch((error: unknown) => {
    if (error !== rollback) throw error
  })
}

async function sentIds(): Promise<readonly string[]> {
  const { rows } = await pool.query('select id from outbox order by id')
  return rows.map(({ id }) => `<${id}@farebox.example>`)
}

describe('letters whose workers are killed', () => {
  it('all arrive, are known by their Message-ID where they arrive again, and what was rolled back never does', async () => {
    await sandbox.mailFault(['reset=after-data'], UNACKNOWLEDGED)
    await sandbox.mailFault(['delay=100'], 10 * PEOPLE)
    for (let at = 0; at < PEOPLE; at += 1) {
      await send({ ...LETTERS.reset, to: `person-${at}@harbour-${at % 4}.example` })
      if (at % 10 === 0) await send({ ...LETTERS.reset, to: 'rolled-back@harbour.example' }, true)
    }
    await until(async () => (await sandbox.mail()).length > UNACKNOWLEDGED, PATIENCE_MS, 'the first letters')
    const [victim] = workers
    assert.ok(victim !== undefined)
    await victim.kill()
    workers[0] = await victim.restart()
    // Their leases and pauses would take a minute.
    const areDelivered = async () => {
      await letTimePass(pool)
      return (await statesIn(pool)).delivered === PEOPLE
    }
    await until(areDelivered, 3 * PATIENCE_MS, 'the delivery of all')

    const mail = await sandbox.mail()
    const unique = new Set(mail.map(({ message_id }) => message_id))
    assert.deepEqual([...unique].toSorted(), await sentIds())
    assert.ok(mail.length >= PEOPLE + UNACKNOWLEDGED, `${mail.length} messages`)
    for (let at = 0; at < PEOPLE; at += 1) {
      const own = await sandbox.mail(`person-${at}@harbour-${at % 4}.example`)
      assert.equal(new Set(own.map(({ message_id }) => message_id)).size, 1)
      assert.deepEqual(own[0]?.links, [LETTERS.reset.link])
    }
    assert.deepEqual(await sandbox.mail('rolled-back@harbour.example'), [])
  })

  it('leave nothing readable behind, before or after', async () => {
    await (await fetch(`${sandbox.url}/control/mail`, { method: 'DELETE' })).text()
    // Letters that were on their way twice may still come.
    await sandbox.mailFault(['status=550'], 1, 'canary-person')
    await send({ ...LETTERS.invitation, to: 'canary-person@harbour.example', workspace: 'canary-workspace' })
    await until(async () => (await statesIn(pool)).dead === 1, PATIENCE_MS, 'the refusal')
    const { rows } = await pool.query('select * from outbox')
    const stored = JSON.stringify(rows)
    for (const secret of ['canary-person', 'canary-workspace', 'person-1@', 'Vq7N1sKe4jHdXw2PzT6RyB'])
      assert.ok(!stored.includes(secret), secret)
    assert.equal(rows.filter(({ sealed }) => sealed !== null).length, 1)
    const [dead] = rows.filter(({ died_at }) => died_at !== null)
    assert.match(dead.failure, /^the mail server answered 550 .*at RCPT TO$/)
    assert.equal(dead.destination, 'harbour.example')
  })
})
