import type pg from 'pg'
import { z } from 'zod'
import { networkOf } from '../identity/failures-by-address.ts'
import { Fault, type FaultCode } from '../kernel/fault.ts'
import { type Query, queryOn } from '../storage/transaction.ts'
import { hashOf } from './tokens.ts'
import type { Visitor } from './visitor.ts'

/** How often something may be tried that could be guessed, or that writes to strangers. Counted in PostgreSQL, for all processes. */

export type Limit = { readonly kind: string; readonly most: number; readonly seconds: number }
/** One limit, for one of those whom it counts. */
export type Tried = { readonly limit: Limit; readonly key: Buffer }

const QUARTER_SECONDS = 15 * 60
const HOUR_SECONDS = 3_600
const DAY_SECONDS = 24 * HOUR_SECONDS

const limit = (kind: string, most: number, seconds: number): Limit => ({ kind, most, seconds })

export const LIMITS = {
  signInOfMailbox: limit('sign-in of mailbox', 10, QUARTER_SECONDS),
  signInFromAddress: limit('sign-in from address', 30, QUARTER_SECONDS),
  signInFromNetwork: limit('sign-in from network', 200, QUARTER_SECONDS),
  /** Of all that are tried, right ones too: each takes a hash. */
  anySignInOfMailbox: limit('any sign-in of mailbox', 60, QUARTER_SECONDS),
  anySignInFromAddress: limit('any sign-in from address', 300, QUARTER_SECONDS),
  anySignInFromNetwork: limit('any sign-in from network', 2_000, QUARTER_SECONDS),
  /** A session waits for ten minutes. */
  codeInSession: limit('code in session', 5, 10 * 60),
  codeOfPerson: limit('code of person', 10, QUARTER_SECONDS),
  /** Apart from codes, so that who guesses those keeps nobody from using one. */
  recoveryCodeInSession: limit('recovery code in session', 5, 10 * 60),
  recoveryCodeOfPerson: limit('recovery code of person', 10, QUARTER_SECONDS),
  /** Of somebody who is signed in. */
  factorChangeOfPerson: limit('code to change factor', 10, QUARTER_SECONDS),
  passwordOfPerson: limit('password of person', 10, QUARTER_SECONDS),
  linkFromAddress: limit('link from address', 30, QUARTER_SECONDS),
  linkFromNetwork: limit('link from network', 200, QUARTER_SECONDS),
  signUpFromAddress: limit('sign-up from address', 5, HOUR_SECONDS),
  signUpFromNetwork: limit('sign-up from network', 20, HOUR_SECONDS),
  askFromAddress: limit('mail from address', 10, HOUR_SECONDS),
  askFromNetwork: limit('mail from network', 40, HOUR_SECONDS),
  /** Letters to an address as it is typed, apart by who has them sent. */
  resetsOfAddress: limit('resets of address', 5, DAY_SECONDS),
  /** Beyond those, so that nobody can keep its owner out for a day. */
  hourlyResetOfAddress: limit('hourly reset of address', 1, HOUR_SECONDS),
  verificationsOfAddress: limit('verifications of address', 5, DAY_SECONDS),
  signUpsOfAddress: limit('sign-ups of address', 5, DAY_SECONDS),
  /** Each label behind + is another address and the same mailbox. */
  signUpsOfMailbox: limit('sign-ups of mailbox', 20, DAY_SECONDS),
  invitationsToAddress: limit('invitations to address', 5, DAY_SECONDS),
  factorChangesOfPerson: limit('factor changes of person', 6, HOUR_SECONDS),
  passwordChangesOfPerson: limit('password changes of person', 6, HOUR_SECONDS),
  verificationAgain: limit('verification again', 1, 60),
  invitationsOfWorkspace: limit('invitations of workspace', 50, DAY_SECONDS),
} as const satisfies Readonly<Record<string, Limit>>

export type Limits = Readonly<Record<keyof typeof LIMITS, Limit>>

export type Attempts = {
  readonly limits: Limits
  /** Counts an attempt under all of them, or under none and refuses it where one has no more; together with whatever else a transaction does. */
  readonly take: (tried: readonly Tried[], within?: Query) => Promise<void>
  /** The same by the first of several ways that has one left. */
  readonly takeOneOf: (ways: readonly [readonly Tried[], ...(readonly Tried[])[]]) => Promise<void>
  /** What turned out to be no guess is not counted. */
  readonly giveBack: (tried: readonly Tried[]) => Promise<void>
  /** Begins them anew. */
  readonly forget: (tried: readonly Tried[], within: Query) => Promise<void>
  /** Counts an attempt before it is made; null says that it failed, and anything else is given back, but for what counts all that are made. */
  readonly guess: <T>(
    tried: readonly Tried[],
    work: () => Promise<T | null>,
    all?: readonly Tried[],
  ) => Promise<T | null>
  /** How many more there are, and until when where the window has begun. */
  readonly left: (tried: Tried) => Promise<{ readonly left: number; readonly until: Date | null }>
}

export function createAttempts({ pool, limits = LIMITS }: { pool: pg.Pool; limits?: Limits }): Attempts {
  const attempts: Attempts = {
    limits,
    async take(tried, within = queryOn(pool)) {
      const { rows } = await within(
        'select take_attempts(kinds => $1, keys => $2, most => $3, seconds => $4) as wait',
        [
          ...[tried.map(({ limit }) => limit.kind), tried.map(({ key }) => key)],
          ...[tried.map(({ limit }) => limit.most), tried.map(({ limit }) => limit.seconds)],
        ],
      )
      const [{ wait }] = waitRows.parse(rows)
      if (wait > 0) throw refusal(wait)
    },
    async takeOneOf([first, ...others]) {
      const refused = await attempts.take(first).then(
        () => null,
        (error: unknown) => error,
      )
      if (refused === null) return
      const [next, ...rest] = others
      if (next === undefined || !(refused instanceof Fault)) throw refused
      await attempts.takeOneOf([next, ...rest])
    },
    async giveBack(tried) {
      // In the order in which they are taken, so that nobody waits for who waits for them.
      await pool.query(
        `with taken as materialized (
           select row.kind, row.key from unnest($1::text[], $2::bytea[]) item (kind, key)
           join door_attempts row on row.kind = item.kind and row.key = item.key
           order by row.kind, row.key for update of row
         )
         update door_attempts row set count = row.count - 1 from taken
         where row.kind = taken.kind and row.key = taken.key and row.count > 0 and row.ends_at > clock_timestamp()`,
        [tried.map(({ limit }) => limit.kind), tried.map(({ key }) => key)],
      )
    },
    async forget(tried, within) {
      await within(
        'delete from door_attempts row using unnest($1::text[], $2::bytea[]) item (kind, key) where row.kind = item.kind and row.key = item.key',
        [tried.map(({ limit }) => limit.kind), tried.map(({ key }) => key)],
      )
    },
    async guess(tried, work, all = []) {
      await attempts.take([...tried, ...all])
      const result = await work().catch(async (error: unknown) => {
        if (error instanceof Fault && NOTHING_COMPARED.includes(error.code)) await attempts.giveBack([...tried, ...all])
        throw error
      })
      if (result !== null) await attempts.giveBack(tried)
      return result
    },
    async left({ limit, key }) {
      const { rows } = await pool.query(
        'select count, ends_at from door_attempts where kind = $1 and key = $2 and ends_at > clock_timestamp()',
        [limit.kind, key],
      )
      const [window] = windowRows.parse(rows)
      return { left: Math.max(0, limit.most - (window?.count ?? 0)), until: window?.ends_at ?? null }
    },
  }
  return attempts
}

const NOTHING_COMPARED: readonly FaultCode[] = ['overloaded', 'password_reset_required']

const waitRows = z.tuple([z.object({ wait: z.number() })])
const windowRows = z.array(z.object({ count: z.int(), ends_at: z.date() }))

function refusal(waitSeconds: number): Fault {
  const retryAfterSeconds = Math.ceil(waitSeconds)
  const minutes = Math.ceil(waitSeconds / 60)
  const wait = retryAfterSeconds <= 120 ? `${retryAfterSeconds} s` : `${minutes} minutes`
  const detail = `Rate limit: too many attempts. Try again in ${wait}.`
  return new Fault('rate_limit_exceeded', { detail, retryAfterSeconds })
}

/** Whoever has one address of IPv6 has the 2^64 beside it. */
export function addressKey({ address }: Visitor): Buffer {
  return hashOf(networkOf(address))
}

export function networkKey({ network }: Visitor): Buffer {
  return hashOf(network)
}
