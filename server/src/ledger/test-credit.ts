import type pg from 'pg'
import { derivedId } from '../kernel/derived-id.ts'
import type { Id } from '../kernel/ids.ts'
import { type Nanos, ZERO } from '../kernel/money.ts'
import { createRecentMap } from '../kernel/recent-map.ts'
import { type By, SERVICE } from '../storage/audit.ts'
import { inTransaction, OpenTransaction, type Query } from '../storage/transaction.ts'
import { creditAccountBy } from './credit.ts'

/**
 * Test money for everybody: a new workspace starts with it, and gets it again when a test call would be refused for want of it, once a day.
 * The entry's id is made of account and day, so that however many processes give it, it is given once.
 */

type Gift = { readonly accountId: Id; readonly amount: Nanos; readonly nowMs: number }

/** False where it was given that day, where the amount is 0, and where the account is not for test money. */
export async function giveTestCredit(query: Query, by: By, { accountId, amount, nowMs }: Gift): Promise<boolean> {
  if (amount <= ZERO) return false
  const entryId = entryIdOf(accountId, nowMs)
  // Under the lock, because another amount may have been given under the id: the setting can change within a day.
  const { rows: accounts } = await query("select from accounts where id = $1 and mode = 'test' for no key update", [
    accountId,
  ])
  if (accounts.length === 0 || (await isEntered(query, entryId))) return false
  return creditAccountBy(new OpenTransaction(query), by, { entryId, accountId, amount, kind: 'promotion' })
}

export type TestCredit = {
  /** Whether this process knows that the day's is given. */
  readonly isKnownGiven: (accountId: Id) => boolean
  /** Gives the day's where that covers what is short. False where nothing can have changed: a call need not be begun again. */
  readonly refill: (accountId: Id, short: Nanos) => Promise<boolean>
  /** What a refused call would be given now. */
  readonly atHand: (accountId: Id) => Promise<Nanos>
}

type Parts = {
  readonly pool: pg.Pool
  /** For a day; 0 for none. */
  readonly amount: Nanos
  readonly time: { readonly nowMs: () => number }
}

const ACCOUNTS_KNOWN = 10_000

export function createTestCredit({ pool, amount, time }: Parts): TestCredit {
  /** The day whose money an account is known to have been given. */
  const given = createRecentMap<Id, number>(ACCOUNTS_KNOWN)
  const running = new Map<Id, Promise<void>>()

  function isKnownGiven(accountId: Id): boolean {
    return amount <= ZERO || given.get(accountId) === dayAt(time.nowMs())
  }

  async function give(accountId: Id): Promise<void> {
    const nowMs = time.nowMs()
    await inTransaction(pool, (query) => giveTestCredit(query, SERVICE, { accountId, amount, nowMs }))
    given.set(accountId, dayAt(nowMs))
  }

  return {
    isKnownGiven,

    async refill(accountId, short) {
      if (short > amount) return false
      if (isKnownGiven(accountId)) return true
      const giving = running.get(accountId) ?? give(accountId).finally(() => running.delete(accountId))
      running.set(accountId, giving)
      await giving
      return true
    },

    async atHand(accountId) {
      if (isKnownGiven(accountId)) return ZERO
      const isGiven = await isEntered(
        (text, values = []) => pool.query(text, [...values]),
        entryIdOf(accountId, time.nowMs()),
      )
      return isGiven ? ZERO : amount
    },
  }
}

function entryIdOf(accountId: Id, nowMs: number): Id {
  return derivedId('test credit', accountId, `${dayAt(nowMs)}`)
}

const DAY_MS = 86_400_000

function dayAt(nowMs: number): number {
  return Math.floor(nowMs / DAY_MS)
}

async function isEntered(query: Query, entryId: Id): Promise<boolean> {
  const { rows } = await query('select from entries where id = $1', [entryId])
  return rows.length > 0
}
