import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Gateway } from '../../harness/gateways.ts'
import { count, isFullProof, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { Random } from '../../sandbox/src/random.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { CALLS, call, chargesOf, errorOf, makeCustomer, startInstallation, type Told } from './installation.ts'

/**
 * Many keys, each sent several times at once to processes that are killed meanwhile. What the ledger has and what the
 * upstream was asked is compared key by key, whatever the callers were told.
 */
const KEYS = count({ full: 2_000, reduced: 60 })
const COPIES = 5
const SENDERS = count({ full: 20, reduced: 6 })
/** Of so many keys one is answered by its upstream with an error that costs nothing. */
const UNCHARGED_EVERY = 8
const PAUSE_BETWEEN_KILLS_MS = count({ full: 1_200, reduced: 300 })
const TRIES_LIMIT = count({ full: 20, reduced: 6 })

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3, env: { FAREBOX_LOG_LEVEL: 'error' } })
const { pool, sandbox } = installation
const team: Gateway[] = [...installation.gateways]
after(async () => {
  await Promise.all(team.map((gateway) => gateway.stop()))
  await installation.stop()
})
const customer = await makeCustomer(pool, { money: 1_000_000_000_000n })
const random = new Random(seed)

type Key = { readonly name: string; readonly operation: string; readonly word: string; readonly isCharged: boolean }

const keys = Array.from({ length: KEYS }, (_, at): Key => {
  const isCharged = at % UNCHARGED_EVERY !== 0
  const operation = isCharged && at % 2 === 0 ? 'rerank' : 'tag_detail'
  const trouble = isCharged ? '' : ' sandbox:code=400'
  return {
    name: `key-${at}`,
    operation,
    word: `mark${at}. sandbox:delay=${random.between(0, 250)}${trouble}`,
    isCharged,
  }
})

/** Undefined where the process died before it answered. */
async function send({ name, operation, word }: Key): Promise<Told | undefined> {
  const { url } = team[random.between(0, team.length - 1)] ?? { url: '' }
  return call(url, customer.secret, operation, word, { headers: { 'idempotency-key': name } }).catch(() => undefined)
}

const told = new Map<string, Told[]>(keys.map(({ name }) => [name, []]))
let lost = 0

async function sendAndNote(key: Key): Promise<Told | undefined> {
  const answer = await send(key)
  if (answer === undefined) lost += 1
  else told.get(key.name)?.push(answer)
  return answer
}

/** Several copies at once, and then again with the same key until somebody says what became of it. */
async function sendKey(key: Key): Promise<void> {
  const answers = await Promise.all(Array.from({ length: COPIES }, () => sendAndNote(key)))
  for (let tries = 0; tries < TRIES_LIMIT && !answers.some((answer) => answer && isFinal(answer)); tries += 1) {
    await delay(100)
    answers.push(await sendAndNote(key))
  }
}

function isFinal(answer: Told): boolean {
  return answer.status < 400 || ['idempotency_completed', 'outcome_unknown'].includes(String(errorOf(answer).code))
}

/** Kills whichever lives, as long as another one does, and lets it come back. */
async function killAndRestart(isOver: () => boolean): Promise<number> {
  const returns: Promise<void>[] = []
  while (!isOver()) {
    await delay(PAUSE_BETWEEN_KILLS_MS)
    const living = team.filter((gateway) => !gateway.hasExited())
    const victim = living[random.between(0, living.length - 1)]
    if (victim === undefined || living.length < 2) continue
    await victim.kill()
    const comeBack = async () => {
      team[team.indexOf(victim)] = await victim.restart()
    }
    returns.push(comeBack())
  }
  await Promise.all(returns)
  return returns.length
}

/** What an upstream was asked for a key, in order. */
function askedFor({ operation, word }: Key, journal: readonly JournalEntry[]): readonly JournalEntry[] {
  const { path, body } = CALLS[operation]?.(word) ?? { path: '' }
  if (body === undefined) return journal.filter(({ query }) => query === path.slice(path.indexOf('?') + 1))
  const sha = createHash('sha256')
    .update(JSON.stringify({ model: 'rerank', ...Object(body) }))
    .digest('hex')
  return journal.filter(({ body_sha256 }) => body_sha256 === sha)
}

async function openHolds(): Promise<ReadonlyMap<Id, boolean>> {
  const { rows } = await pool.query<{ id: Id; is_unsettled: boolean }>(
    'select id, unsettled_at is not null as is_unsettled from holds where account_id = $1',
    [customer.accountId],
  )
  return new Map(rows.map(({ id, is_unsettled }) => [id, is_unsettled]))
}

describe('keys that are sent again while processes are killed', () => {
  it('ERR-3 ERR-6 no key is charged twice, and no upstream asked twice unless the first ended uncharged', async (test) => {
    test.diagnostic(`seed ${seed}`)
    const waiting = [...keys]
    let senders = SENDERS
    const work = async () => {
      for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) await sendKey(key)
      senders -= 1
    }
    const [kills] = await Promise.all([
      killAndRestart(() => senders === 0),
      ...Array.from({ length: SENDERS }, () => work()),
    ])
    assert.ok(kills > 0)
    sometimes(kills >= 2, `two kills at least (${kills})`)

    // Leases end and orphans are swept by themselves; that takes half a minute, which the reduced run does not have.
    const isSwept = async () => [...(await openHolds()).values()].every((isUnsettled) => isUnsettled)
    if (isFullProof) await until(isSwept, PATIENCE_MS, 'that every orphan is found')
    for (let at = 0; at < keys.length; at += 20) await Promise.all(keys.slice(at, at + 20).map(sendAndNote))

    const journal = await sandbox.journal()
    const charges = await chargesOf(pool, customer.accountId)
    const holds = await openHolds()
    const figures = { charged: 0, uncharged: 0, unsettled: 0, never: 0, repeatedAfterUncharged: 0 }
    let askedInAll = 0
    for (const key of keys) {
      const asked = askedFor(key, journal)
      const idsOf = asked.map(({ request_id }) => request_id ?? '')
      const paid = idsOf.filter((id) => (charges.get(id) ?? 0n) > 0n)
      const open = idsOf.filter((id) => holds.has(id))
      const answers = told.get(key.name) ?? []
      const fine = answers.filter(({ status }) => status === 200)
      const what = `${key.name}: ${JSON.stringify(answers.map(({ status, json }) => [status, Object(json.error).code]))}`
      askedInAll += asked.length

      assert.ok(paid.length + open.length <= 1, `charged or open more than once: ${what}`)
      if (!key.isCharged) assert.equal(paid.length, 0, what)
      // Whatever was asked before the last time has ended, and cost nothing.
      for (const id of idsOf.slice(0, -1)) assert.equal(charges.get(id), 0n, `asked again: ${what}`)
      if (key.isCharged) assert.ok(fine.length <= 1, `answered more than once: ${what}`)
      // What somebody was told had completed is in the ledger.
      for (const { id, costUsd } of fine)
        assert.equal(charges.get(id), BigInt(String(costUsd).replace('.', '')), `lost: ${what}`)
      for (const answer of answers.filter((one) => errorOf(one).code === 'idempotency_completed'))
        assert.equal(errorOf(answer).first_request_id, paid[0], what)
      for (const answer of answers.filter((one) => errorOf(one).code === 'outcome_unknown'))
        assert.equal(answer.headers.get('x-should-retry'), 'false')

      if (idsOf.length > 1) figures.repeatedAfterUncharged += 1
      if (open.length > 0) figures.unsettled += 1
      else if (paid.length > 0) figures.charged += 1
      else if (asked.length > 0) figures.uncharged += 1
      else figures.never += 1
    }
    assert.equal(askedInAll, journal.length, 'every request of an upstream belongs to a key')
    assert.ok(figures.charged > 0)
    sometimes(figures.charged > KEYS / 2, `more than half are charged (${figures.charged} of ${KEYS})`)
    sometimes(figures.unsettled > 0, 'a kill in the middle of a call')
    assert.deepEqual(await verifyLedger(pool), [])

    const all = [...told.values()].flat()
    const shown = {
      keys: KEYS,
      requests: all.length + lost,
      answered: all.length,
      lost,
      kills,
      upstream_requests: journal.length,
      charged_twice: 0,
      ...figures,
      answers: Object.groupBy(all, (one) => String(errorOf(one).code ?? one.status)),
    }
    const answers = Object.fromEntries(Object.entries(shown.answers).map(([name, ones]) => [name, ones?.length]))
    test.diagnostic(JSON.stringify({ ...shown, answers }))
    recordProof('idempotency', 'keys sent again while processes are killed', { ...shown, answers })
  })
})
