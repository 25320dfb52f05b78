import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Gateway } from '../../../harness/gateways.ts'
import { count, recordProof, seed } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { Random } from '../../../sandbox/src/random.ts'
import { resolveCall } from '../../../server/src/calls/orphans.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { codeOf, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { mostAtOnce, videoTasks, videoTasksByCall } from './sandbox-videos.ts'
import { cancel, createTask, stored, untilStored } from './video.ts'

/**
 * Many callers race for the three places of one key, over three processes of which one is killed meanwhile. A task whose
 * process died before it knew who has it keeps its place until somebody says what became of it.
 */
const PROOF = 'tasks-places'
const ROUNDS = count({ full: 12, reduced: 1 })
const RACERS = 100
const PLACES = 3
/** Waits to be canceled, so that none ends while they race; its upstream takes a moment to say that it has it. */
const WORDS = 'sandbox:pending-ms=86400000 sandbox:delay=500'
const FOUND_WITHIN_MS = 120_000

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3, env: { FAREBOX_LOG_LEVEL: 'silent' } })
const { pool, sandbox } = installation
const team: Gateway[] = [...installation.gateways]
after(async () => {
  await Promise.all(team.map((gateway) => gateway.stop()))
  await installation.stop()
})
const random = new Random(seed)
const { secret, keyId } = await makeCustomer(pool, { money: 1_000_000_000_000n })

const urlOf = (place: number) => team[place % team.length]?.url ?? ''
/** Undefined where the process died before it answered. */
const race = (url: string): Promise<Told | undefined> =>
  createTask(url, secret, { words: WORDS }).catch(() => undefined)

type OpenTask = { readonly id: Id; readonly state: string; readonly is_unsettled: boolean; readonly is_owned: boolean }

async function openTasks(): Promise<readonly OpenTask[]> {
  const { rows } = await pool.query<OpenTask>(
    `select id, state, unsettled_at is not null as is_unsettled, owner_id is not null as is_owned
     from tasks join holds using (id) where tasks.credential_id = $1`,
    [keyId],
  )
  return rows
}

async function placesTaken(): Promise<number> {
  const { rows } = await pool.query(
    "select count(*)::integer as taken from claims where credential_id = $1 and scope = 'tasks'",
    [keyId],
  )
  return rows[0].taken
}

/** Looks again and again until told to stop; the most places that were taken at any look. */
function watchPlaces() {
  let isOver = false
  let most = 0
  const watching = (async () => {
    while (!isOver) {
      most = Math.max(most, await placesTaken())
      await delay(5)
    }
  })()
  return async () => {
    isOver = true
    await watching
    return most
  }
}

/** In turn a process dies at any moment, and the one dies that has taken the places. */
async function raceWithKill(round: number): Promise<readonly (Told | undefined)[]> {
  const victimAt = random.between(0, team.length - 1)
  const victim = team[victimAt]
  assert.ok(victim)
  const isAimed = round % 2 === 0
  const early = isAimed ? Array.from({ length: 10 }, () => race(victim.url)) : []
  if (isAimed) await until(async () => (await placesTaken()) === PLACES, PATIENCE_MS, 'that the places are taken')
  const others = Array.from({ length: RACERS - early.length }, (_, at) => race(urlOf(at)))
  await delay(isAimed ? random.between(0, 100) : random.between(0, 600))
  await victim.kill()
  const told = await Promise.all([...early, ...others])
  team[victimAt] = await victim.restart()
  return told
}

/** When an operator gave away the place of a task that its upstream may still have. */
const givenUpAtMs = new Map<string | null, number>()
const figures = { won: 0, refused: 0, lost: 0, orphans: 0, orphans_at_the_upstream: 0, canceled: 0 }

/** Ends whatever the round has left, as its caller or an operator would. */
async function clear(): Promise<void> {
  for (const { id, state } of await openTasks()) {
    if (state === 'CREATING') continue
    await delay(550)
    const told = await cancel(urlOf(0), secret, id)
    assert.equal(told.status, 200, told.text)
    await untilStored(pool, id, 'CANCELED')
    figures.canceled += 1
  }
  const left = async () => (await openTasks()).every(({ is_unsettled }) => is_unsettled)
  await until(left, FOUND_WITHIN_MS, 'that what a dead process left is found')
  const orphans = await openTasks()
  assert.equal(await placesTaken(), orphans.length, 'each keeps its place until it is resolved')
  const known = await videoTasksByCall(sandbox)
  for (const { id } of orphans) {
    assert.equal((await stored(pool, id)).state, 'CREATING')
    figures.orphans += 1
    figures.orphans_at_the_upstream += known.has(id) ? 1 : 0
    givenUpAtMs.set(id, Date.now())
    assert.equal((await resolveCall(pool, id, null))?.outcome, 'voided')
    assert.equal((await stored(pool, id)).state, 'FAILED')
  }
  assert.equal(await placesTaken(), 0)
}

describe('one hundred who race for three places while a process is killed', () => {
  it(`LIMIT-3 TASK-6 get three, never more, and none is leaked (${ROUNDS} rounds, seed ${seed})`, async (test) => {
    let most = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      const stopWatching = watchPlaces()
      const told = await raceWithKill(round)
      const answered = told.filter((one) => one !== undefined)
      const won = answered.filter(({ status }) => status === 200)
      const refused = answered.filter(({ status }) => status === 429)
      for (const one of refused) assert.equal(codeOf(one), 'rate_limit_exceeded', one.text)
      assert.deepEqual(
        answered.filter(({ status }) => status !== 200 && status !== 429).map(({ text }) => text),
        [],
      )
      const open = await openTasks()
      assert.equal(open.length, PLACES, `round ${round}: ${JSON.stringify(open)}`)
      for (const { id } of won)
        assert.ok(
          open.some((one) => one.id === id),
          `${id} was promised and is gone`,
        )
      figures.won += won.length
      figures.refused += refused.length
      figures.lost += told.length - answered.length
      await clear()
      most = Math.max(most, await stopWatching())
    }
    assert.equal(most, PLACES)

    // Nothing was leaked: as many as ever are to be had.
    const again = await Promise.all(Array.from({ length: PLACES + 1 }, (_, at) => race(urlOf(at))))
    assert.deepEqual(again.map((one) => one?.status).toSorted(), [200, 200, 200, 429])
    await clear()
    const upstream = await videoTasks(sandbox)
    const byCall = new Set(upstream.map(({ request_id_of_create }) => request_id_of_create))
    assert.equal(byCall.size, upstream.length, 'no call made two')
    const atTheUpstream = mostAtOnce(
      upstream.map(({ request_id_of_create, created_at_ms, ended_at_ms }) => ({
        fromMs: created_at_ms,
        toMs: ended_at_ms ?? givenUpAtMs.get(request_id_of_create) ?? Number.POSITIVE_INFINITY,
      })),
    )
    assert.equal(atTheUpstream, PLACES)
    assert.deepEqual(await verifyLedger(pool), [])
    const shown = { racers: RACERS, processes: team.length, rounds: ROUNDS, kills: ROUNDS, ...figures }
    test.diagnostic(JSON.stringify(shown))
    recordProof(PROOF, 'races for places with kills', {
      ...shown,
      most_places_taken_at_once: most,
      most_at_once_at_the_upstream: atTheUpstream,
      places_leaked: 0,
    })
  })
})
