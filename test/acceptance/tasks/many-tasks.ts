import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { type Gateway, startGateway } from '../../../harness/gateways.ts'
import type { Secret } from '../../../server/src/kernel/secret.ts'
import { makeCustomer, makeKey } from '../installation.ts'
import { created } from './video.ts'

/** Many tasks of many keys, and processes that do nothing but look after them. */
const PLACES = 3
const KEYS_OF_A_CUSTOMER = 10
const MAKERS = 8

/** Those of an installation that serve callers look after no tasks. */
export const WITHOUT_WORKER = { FAREBOX_ROLES: 'gateway,admin', FAREBOX_LOG_LEVEL: 'silent' }

export function startWorker(databaseUrl: string, masterKey: Secret): Promise<Gateway> {
  const env = { FAREBOX_ROLES: 'worker', FAREBOX_LOG_LEVEL: 'silent' }
  return startGateway({ databaseUrl, env: { ...env, FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal() } })
}

/** Makes so many tasks, each of five seconds in 720P. Their ids. */
export async function makeTasks(
  { url, pool }: { readonly url: string; readonly pool: pg.Pool },
  many: number,
  wordsOf: () => string,
): Promise<readonly string[]> {
  const made: string[] = []
  let left = many
  const make = async () => {
    while (left > 0) {
      const { workspaceId } = await makeCustomer(pool, { money: 1_000_000_000_000n })
      for (let key = 0; key < KEYS_OF_A_CUSTOMER && left > 0; key += 1) {
        const mine = Math.min(PLACES, left)
        left -= mine
        const { secret } = await makeKey(pool, workspaceId)
        const parameters = { duration: 5, resolution: '720P' }
        const own = Array.from({ length: mine }, () => created(url, secret, { words: wordsOf(), parameters }))
        made.push(...(await Promise.all(own)))
      }
    }
  }
  await Promise.all(Array.from({ length: MAKERS }, make))
  assert.equal(made.length, many)
  return made
}

export async function openTasks(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query('select count(*)::integer as open from tasks where ended_at is null')
  return rows[0].open
}

async function openAmong(pool: pg.Pool, ids: readonly string[]): Promise<number> {
  const text = 'select count(*)::integer as open from tasks where id = any ($1) and ended_at is null'
  const { rows } = await pool.query(text, [ids])
  return rows[0].open
}

/** Waits until all have ended. */
export async function untilEnded(pool: pg.Pool, ids: readonly string[], deadlineMs: number): Promise<void> {
  const untilMs = performance.now() + deadlineMs
  for (;;) {
    const open = await openAmong(pool, ids)
    if (open === 0) return
    assert.ok(performance.now() < untilMs, `${open} of ${ids.length} tasks have not ended`)
    await delay(200)
  }
}
