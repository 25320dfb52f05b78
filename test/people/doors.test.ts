import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof } from '../../harness/proof.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { NO_USAGE } from '../../server/src/calls/calls.ts'
import { KEYS_PER_TIER, TIERS } from '../../server/src/catalogue/tiers.ts'
import { createKey, revokeKey } from '../../server/src/identity/keys.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { askOf } from '../../server/src/limits/ask.ts'
import { createOutboxWorker } from '../../server/src/outbox/worker.ts'
import { LIMITS } from '../../server/src/people/attempts.ts'
import { createPasswords } from '../../server/src/people/passwords.ts'
import { codeOf, stepAt } from '../../server/src/people/totp.ts'
import { visitorOf } from '../../server/src/people/visitor.ts'
import { createSendMail, type Mail, mail } from '../../server/src/storage/mail.ts'
import { inTransaction } from '../../server/src/storage/transaction.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { ACTOR, makeCustomer } from '../identity/customers.ts'
import { anotherAddress, anotherVisitor, connectPeople, PASSWORD } from '../identity/people/world.ts'
import { connect, holdOf, ids } from '../ledger/world.ts'

const database = await freshDatabase()
const PROOF = 'doors'
const masterKey = makeMasterKey()
/** Two processes: one begins what fits by one statement, the other judges all. */
const processes = [connect(database.url, { fast: true }), connect(database.url)]
const pool = (processes[0] ?? connect(database.url)).pools.rest
after(async () => {
  await Promise.all(processes.map(({ pools }) => pools.close()))
})

describe('keys that are made anew', () => {
  const ATTEMPTS = count({ full: 2_000, reduced: 80 })
  const WORKERS = count({ full: 40, reduced: 8 })
  const { requestsPerMinute, tokensPerMinute, concurrency } = TIERS.free
  const KEYS = KEYS_PER_TIER.free

  it('never give an account more requests, tokens and calls at once than the keys of its tier', async () => {
    const { accountId, workspaceId, keyId } = await makeCustomer(pool, { promotion: 1_000_000_000_000n })
    const limits = { ...TIERS.free }
    const ask = askOf(limits, ['tokens', 'concurrency'])
    let [attempts, refused, calls] = [0, 0, 0]

    /** Uses up a key: calls race, and a few of them go on when the key has ended. */
    async function useUp(credentialId: Id, at: number): Promise<void> {
      const { calls: path } = processes[at % processes.length] ?? assert.fail()
      const rounds = Array.from({ length: 3 }, async (_, round) => {
        for (let n = 0; n < 25; n += 1) {
          const id = ids.next()
          const hold = holdOf(1n)
          const asked = { id, accountId, credentialId, operation: 'probe', hold, tokens: 1_000 }
          const { outcome } = await path.begin({ ...asked, windows: ask.windows, claims: ask.slots })
          if (outcome !== 'begun') continue
          calls += 1
          if (n === 10 && round === 0) continue
          const usage = { ...NO_USAGE, executed: true, inputTokens: 1_000, value: nanos(1n) }
          await path.end({ id, accountId, amount: nanos(1n), forgiven: false, usage })
        }
      })
      await Promise.all(rounds)
    }

    async function work(worker: number): Promise<void> {
      while (attempts < ATTEMPTS) {
        attempts += 1
        try {
          const { id } = await createKey({ pool, ids }, ACTOR, { workspaceId, mode: 'live', name: 'anew' })
          await useUp(id, worker)
          await revokeKey({ pool, ids }, ACTOR, id)
        } catch (error) {
          if (!(error instanceof Fault)) throw error
          assert.ok(error.code === 'rate_limit_exceeded' || error.code === 'quota_exceeded', error.code)
          refused += 1
        }
      }
    }
    await useUp(keyId, 0)
    await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)))

    const { rows } = await pool.query<{ keys: number; requests: number; tokens: number; running: number }>(
      `with used as (
         select c.all_requests as requests, c.all_tokens as tokens, c.calls_at_once as running, k.created_at as starts_at,
           case when k.revoked_at is null or c.calls_at_once > 0 then 'infinity'
             else greatest(k.revoked_at, c.all_started_at + interval '60 seconds') end as ends_at
         from api_keys k join credentials c on c.id = k.id where k.workspace_id = $1
       )
       select count(*)::integer as keys, sum(own.requests)::integer as requests, sum(own.tokens)::float8 as tokens, sum(own.running)::integer as running
       from used at join used own on own.starts_at <= at.starts_at and own.ends_at > at.starts_at group by at.starts_at`,
      [workspaceId],
    )
    const most = (of: (row: (typeof rows)[number]) => number) => Math.max(...rows.map(of))
    assert.ok(most(({ keys }) => keys) <= KEYS, `${most(({ keys }) => keys)} keys at once`)
    assert.ok(most(({ requests }) => requests) <= KEYS * requestsPerMinute)
    assert.ok(most(({ tokens }) => tokens) <= KEYS * tokensPerMinute)
    assert.ok(most(({ running }) => running) <= KEYS * concurrency)
    assert.ok(refused > 0 && calls > 0, `${refused} were refused, ${calls} calls began`)
    recordProof(PROOF, 'M2 keys that are made anew never give an account more than the keys of its tier', {
      attempts,
      refused,
      calls,
      keysAtOnce: most(({ keys }) => keys),
      counterexamples: 0,
    })
  })
})

describe('sign-ins that flood a process', () => {
  const SIGN_INS = count({ full: 300, reduced: 12 })
  const CONNECTIONS = count({ full: 120, reduced: 60 })

  it('keep nobody else’s right password from being compared', async () => {
    const many = { most: 1_000_000 }
    const limits = {
      anySignInOfMailbox: { ...LIMITS.anySignInOfMailbox, ...many },
      anySignInFromAddress: { ...LIMITS.anySignInFromAddress, ...many },
      anySignInFromNetwork: { ...LIMITS.anySignInFromNetwork, ...many },
    }
    const world = connectPeople(database.url, { masterKey, passwords: createPasswords(), limits })
    const join = async () => {
      const email = anotherAddress()
      await world.join(email)
      return email
    }
    const attackers: string[] = []
    for (let n = 0; n < 6; n += 1) attackers.push(await join())
    const others = [await join(), await join(), await join()]
    let [isOver, attempts] = [false, 0]
    const flood = Array.from({ length: CONNECTIONS }, async (_, n) => {
      const email = attackers[n % attackers.length] ?? ''
      // Half of them from one address, the others from one each.
      const from = n % 2 === 0 ? visitorOf('198.51.100.7') : anotherVisitor()
      while (!isOver) {
        attempts += 1
        await world.people.signIn(from, { email, password: PASSWORD }).catch((error: unknown) => {
          if (!(error instanceof Fault)) throw error
        })
      }
    })
    const refused: unknown[] = []
    for (let n = 0; n < SIGN_INS; n += 1) {
      const email = others[n % others.length] ?? ''
      await world.people.signIn(anotherVisitor(), { email, password: PASSWORD }).then(
        (session) => assert.notEqual(session, null),
        (error: unknown) => refused.push(error),
      )
    }
    isOver = true
    await Promise.all(flood)
    await world.close()
    assert.deepEqual(refused, [])
    recordProof(PROOF, 'M4 a flood of sign-ins keeps nobody else’s right password from being compared', {
      connections: CONNECTIONS,
      attempts,
      signIns: SIGN_INS,
      refused: refused.length,
    })
  })
})

describe('letters that flood the lane of a domain', () => {
  const LETTERS = count({ full: 5_000, reduced: 60 })

  it('let links go first and give each mailbox its turn, and notices of one kind are one', async () => {
    const world = connectPeople(database.url, { masterKey })
    await pool.query('delete from outbox')
    const sendMail = createSendMail({ ids, seal: world.seal })
    const send = (letter: Mail) => inTransaction(pool, (query) => sendMail(query, letter))
    const [at, siteUrl] = [new Date().toISOString(), 'https://site.example.com']
    const told = (to: string, workspace: string): Mail => ({ what: 'closure_canceled', to, workspace, siteUrl })
    const floods = ['a', 'b', 'c'].map((name) => `${name}@flooded.example`)
    for (let n = 0; n < LETTERS; n += 1) await send(told(floods[n % 3] ?? '', `${n}`))
    for (let n = 0; n < LETTERS; n += 1) {
      const to = floods[n % 3] ?? ''
      await send({ what: 'factor_changed', to, isOn: n % 2 === 0, at, address: '192.0.2.1', sessionsUrl: siteUrl })
    }
    const waiting = async (where: string) =>
      (await pool.query<{ n: number }>(`select count(*)::integer as n from outbox where ${where}`)).rows[0]?.n
    assert.equal(await waiting("notice = 'factor_changed'"), 3)
    assert.equal(await waiting('true'), LETTERS + 3)
    // Each mailbox has one letter in so many seconds.
    const { rows: early } = await pool.query(
      `select id from (select id, due_at - created_at as wait, row_number() over (partition by receiver order by id) as turn
         from outbox where notice is null) own where turn <= 3600 and wait < (turn - 2) * interval '1 second'`,
    )
    assert.deepEqual(early, [])

    // As if the receiver had been away: all of it is due at once.
    await pool.query("update outbox set due_at = due_at - interval '1 day'")
    const link = `${siteUrl}/reset/x`
    await send({ what: 'reset', to: 'owner@flooded.example', link, until: at, at, address: '192.0.2.2' })
    const letters: Mail[] = []
    const worker = createOutboxWorker({
      ...{ pool, seal: world.seal, clock: systemClock, log: silentLog, delivered: () => {} },
      deliverers: new Map([['mail', { deliver: async ({ payload }) => void letters.push(mail.parse(payload)) }]]),
    })
    assert.equal(await worker.tick(), 8)
    await worker.stop(60_000)
    await world.close()
    assert.ok(
      letters.some(({ what }) => what === 'reset'),
      'the link is among the first eight',
    )
    recordProof(PROOF, 'M1 a flood of letters to a domain lets links go first and gives each mailbox its turn', {
      letters: 2 * LETTERS,
      wereOne: LETTERS - 3,
      counterexamples: 0,
    })
  })

  it('are one where the newest says all: of a password, and of each member who becomes an admin', async () => {
    await pool.query('delete from outbox')
    const sendMail = createSendMail({ ids, seal: createSeal({ current: masterKey }) })
    const [to, at, siteUrl] = ['owner@one.example', new Date().toISOString(), 'https://site.example.com']
    const raised = { what: 'admin_added', to, workspace: 'Harbour', role: 'admin', by: 'Jo', siteUrl } as const
    const changed = { what: 'password_changed', to, at, address: '192.0.2.1', resetUrl: siteUrl } as const
    for (let n = 0; n < 3; n += 1)
      for (const letter of [
        changed,
        { ...raised, member: 'mira@one.example' },
        { ...raised, member: 'zoe@one.example' },
      ])
        await inTransaction(pool, (query) => sendMail(query, letter))
    const { rows } = await pool.query('select count(*)::integer as letters from outbox')
    assert.equal(rows[0].letters, 3)
  })

  it('are not sent by turning the second factor on and off: a person changes it six times an hour', async () => {
    assert.deepEqual(LIMITS.factorChangesOfPerson, { kind: 'factor changes of person', most: 6, seconds: 3_600 })
    const world = connectPeople(database.url, { masterKey })
    await pool.query('delete from outbox')
    const email = anotherAddress()
    const personId = await world.join(email)
    const session = await world.sessionFor(email)
    const changes = []
    for (let n = 0; n < 8; n += 1) {
      await pool.query('update people set totp_used_step = 0 where id = $1', [personId])
      const { rows } = await pool.query<{ on: boolean }>(
        'select totp_since is not null as on from people where id = $1',
        [personId],
      )
      if (rows[0]?.on === false) await world.people.beginSecondFactor(session)
      const { rows: sealed } = await pool.query<{ totp: Buffer }>('select totp from people where id = $1', [personId])
      const key = world.seal.open(sealed[0]?.totp ?? assert.fail(), `person ${personId} totp`).reveal()
      const code = codeOf(Buffer.from(key, 'base64'), stepAt(Date.now() / 1_000))
      const change =
        rows[0]?.on === true
          ? world.people.removeSecondFactor(personId, { code }, anotherVisitor())
          : world.people.confirmSecondFactor(session, code, anotherVisitor())
      changes.push(
        await change.then(
          (changed) => Boolean(changed),
          (error: unknown) => error instanceof Fault && error.code,
        ),
      )
    }
    await world.close()
    assert.deepEqual(changes, [...Array(6).fill(true), ...Array(2).fill('rate_limit_exceeded')])
  })
})
