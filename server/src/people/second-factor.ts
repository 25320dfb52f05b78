import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import { type By, record } from '../storage/audit.ts'
import type { Sealed } from '../storage/reseal.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import type { Tried } from './attempts.ts'
import { createFactorFailures, forgetFailures, MOST_FAILURES } from './factor-failures.ts'
import type { PeopleParts } from './parts.ts'
import { recoveryCodesLeft, replaceRecoveryCodes, useRecoveryCode } from './recovery-codes.ts'
import { dropOldest, endSessionsWithin, isFresh, type Session, sessionOf } from './sessions.ts'
import { hashOf, newToken } from './tokens.ts'
import { base32, KEY_BYTES, keyUri, matchingStep } from './totp.ts'
import { byPerson, type Visitor } from './visitor.ts'

/** The second factor: codes of an authenticator app, and ten recovery codes for who has lost it. Each works once. */

export type Proof = { readonly code: string } | { readonly recovery: string }

const SESSION_DAYS = 30
const REMEMBERED_DAYS = 30
const REMEMBERED_BROWSERS = 20

const boundTo = (personId: Id) => `person ${personId} totp`

/** Where the keys are kept. */
export const SECOND_FACTORS: Sealed = { what: 'second factors', table: 'people', key: 'id', column: 'totp', boundTo }

type Parts = Pick<PeopleParts, 'pool' | 'seal' | 'sendMail' | 'attempts' | 'settings'>

/** The session of whoever changes their own. */
type Own = Pick<Session, 'personId' | 'id'>

export type Passed = {
  /** Another one than before, so that who knew that gains nothing. */
  readonly session: Secret
  /** Has this browser not asked again for a month. */
  readonly remember: () => Promise<Secret>
}

export function createSecondFactor(parts: Parts) {
  const { pool, seal, sendMail, attempts, settings } = parts
  const { limits } = attempts
  const { noteFailure } = createFactorFailures(parts)

  return {
    /** Null where the code is wrong or was used, or the session waits for none. Refused after too many of those in a row. */
    async passSecondFactor(token: string, proof: Proof, visitor: Visitor): Promise<Passed | null> {
      const session = await sessionOf(pool, token)
      if (session === null || session.isComplete) return null
      const { id, personId } = session
      return attempts.guess(triedToPass(proof, id, personId), async () => {
        const completed = await inTransaction(pool, async (query) => {
          const factor = await lockFactor(query, personId)
          if (factor === null || !factor.isOn || !(await isWaiting(query, id))) return null
          if (!(await passes(query, factor, proof, visitor))) return null
          if ('recovery' in proof)
            await record(query, byPerson(personId, visitor), {
              ...{ action: 'person.recovery_code_used', subject: personId },
              ...{ before: {}, after: { left: await recoveryCodesLeft(query, personId) } },
            })
          const completed = await complete(query, id)
          await dropOldest(query, personId, true)
          return completed
        })
        return completed && { session: completed, remember: () => remember(personId, id) }
      })
    },

    /** How many more codes a session may try, and until when where it has tried some. */
    async codesLeftToTry(token: string, proof: Proof): Promise<{ readonly left: number; readonly until: Date | null }> {
      const session = await sessionOf(pool, token)
      if (session === null) return { left: 0, until: null }
      const [own, all] = triedToPass(proof, session.id, session.personId)
      const [ofSession, ofPerson] = await Promise.all([attempts.left(own), attempts.left(all)])
      return ofSession.left <= ofPerson.left ? ofSession : ofPerson
    },

    /** Gives a key that counts once its first code is shown. Null where the sign-in is not fresh: a session that somebody got hold of is not enough. */
    beginSecondFactor({ personId, id }: Own): Promise<{ readonly secret: Secret; readonly uri: Secret } | null> {
      const key = randomBytes(KEY_BYTES)
      return inTransaction(pool, async (query) => {
        if (!(await isFresh(query, id))) return null
        const { rows } = await query(
          'update people set totp = $2, totp_used_step = 0 where id = $1 and totp_since is null returning email',
          [personId, required().seal(new Secret(key.toString('base64')), boundTo(personId))],
        )
        if (rows[0] === undefined) throw invalidRequest('The second factor is already on.')
        const { email: account } = emailRow.parse(rows[0])
        const uri = keyUri(key, { issuer: settings.name, account })
        return { secret: new Secret(base32(key)), uri: new Secret(uri) }
      })
    },

    /** Turns it on, and ends every other session. Null where the code is wrong, or nothing was begun. */
    confirmSecondFactor(
      { personId, id }: Own,
      code: string,
      visitor: Visitor,
    ): Promise<{ readonly recoveryCodes: readonly Secret[] } | null> {
      return attempts.guess(triedToChange(personId), () =>
        inTransaction(pool, async (query) => {
          const factor = await lockFactor(query, personId)
          if (factor === null || factor.isOn || !(await prove(query, factor, { code }))) return null
          await takeChange(query, personId)
          await query('update people set totp_since = clock_timestamp() where id = $1', [personId])
          const recoveryCodes = await replaceRecoveryCodes(query, factor)
          await endSessionsWithin(query, personId, id)
          await tell(query, { factor, isOn: true, visitor }, byPerson(personId, visitor))
          return { recoveryCodes }
        }),
      )
    },

    /** Turns it off, with a code or a recovery code. False where that is wrong. */
    async removeSecondFactor(personId: Id, proof: Proof, visitor: Visitor): Promise<boolean> {
      const removed = await attempts.guess(triedToChange(personId), () =>
        inTransaction(pool, async (query) => {
          const factor = await lockFactor(query, personId)
          if (factor === null || !factor.isOn || !(await passes(query, factor, proof, visitor))) return null
          await takeChange(query, personId)
          await removeWithin(query, personId)
          await tell(query, { factor, isOn: false, visitor }, byPerson(personId, visitor))
          return true
        }),
      )
      return removed !== null
    },
  }

  /** Each change is told by mail, so that they are few. */
  function takeChange(query: Query, personId: Id): Promise<void> {
    return attempts.take([{ limit: limits.factorChangesOfPerson, key: hashOf(personId) }], query)
  }

  function triedToPass(proof: Proof, sessionId: Id, personId: Id): readonly [Tried, Tried] {
    const [own, all] =
      'code' in proof
        ? [limits.codeInSession, limits.codeOfPerson]
        : [limits.recoveryCodeInSession, limits.recoveryCodeOfPerson]
    return [
      { limit: own, key: hashOf(sessionId) },
      { limit: all, key: hashOf(personId) },
    ]
  }

  function triedToChange(personId: Id): readonly Tried[] {
    return [{ limit: limits.factorChangeOfPerson, key: hashOf(personId) }]
  }

  async function passes(query: Query, factor: Factor, proof: Proof, visitor: Visitor): Promise<boolean> {
    const { personId, email, failures, now } = factor
    if (failures >= MOST_FAILURES) throw new Fault('password_reset_required')
    const isRight = await prove(query, factor, proof)
    if (isRight) await forgetFailures(query, personId)
    else await noteFailure(query, { personId, email, failures, at: timeOf(now), visitor })
    return isRight
  }

  function required(): NonNullable<typeof seal> {
    if (seal === null) throw new Error('a second factor needs secrets.master_key (FAREBOX_SECRETS_MASTER_KEY)')
    return seal
  }

  /** Locked, so that of two who bring the same code one is first. */
  async function lockFactor(query: Query, personId: Id): Promise<Factor | null> {
    const { rows } = await query(
      `select id, email, totp, totp_since is not null as is_on, totp_used_step, factor_failures as failures, extract(epoch from clock_timestamp())::float8 as seconds
       from people where id = $1 and totp is not null for no key update`,
      [personId],
    )
    const row = factorRow.optional().parse(rows[0])
    if (row === undefined) return null
    const key = Buffer.from(required().open(row.totp, boundTo(personId)).reveal(), 'base64')
    return {
      personId,
      email: row.email,
      key,
      isOn: row.is_on,
      failures: row.failures,
      now: { seconds: row.seconds, usedStep: row.totp_used_step },
    }
  }

  /** Not where the session is over by now: a new password forgets every browser, also one that is about to be remembered. */
  async function remember(personId: Id, sessionId: Id): Promise<Secret> {
    const { secret, hash } = newToken()
    await inTransaction(pool, async (query) => {
      await query('select from people where id = $1 for no key update', [personId])
      await query(
        `delete from remembered_browsers where hash in (
           select hash from remembered_browsers where person_id = $1 order by expires_at desc offset $2)`,
        [personId, REMEMBERED_BROWSERS - 1],
      )
      await query(
        `insert into remembered_browsers (hash, person_id, expires_at)
         select $1, $2, clock_timestamp() + interval '${REMEMBERED_DAYS} days' from browser_sessions
         where id = $3 and person_id = $2 and ended_at is null`,
        [hash, personId, sessionId],
      )
    })
    return secret
  }

  type Told = { readonly factor: Factor; readonly isOn: boolean; readonly visitor: Visitor }

  async function tell(query: Query, { factor, isOn, visitor }: Told, by: By): Promise<void> {
    await recordFactor(query, by, factor.personId, isOn)
    const at = timeOf(factor.now)
    const sessionsUrl = `${settings.siteUrl}/sessions`
    await sendMail(query, { what: 'factor_changed', to: factor.email, isOn, at, address: visitor.address, sessionsUrl })
  }
}

const emailRow = z.object({ email: z.string() })

const factorRow = z.object({
  email: z.string(),
  totp: z.instanceof(Buffer),
  is_on: z.boolean(),
  totp_used_step: z.bigint().transform(Number),
  failures: z.int(),
  seconds: z.number(),
})

type Factor = {
  readonly personId: Id
  readonly email: string
  readonly key: Buffer
  readonly isOn: boolean
  /** Wrong ones in a row. */
  readonly failures: number
  readonly now: { readonly seconds: number; readonly usedStep: number }
}

function timeOf({ seconds }: Factor['now']): string {
  return new Date(seconds * 1_000).toISOString()
}

/** Uses a code up; false where it is none, or was used. */
async function prove(query: Query, { personId, key, now }: Factor, proof: Proof): Promise<boolean> {
  if ('recovery' in proof) return useRecoveryCode(query, { personId, key }, proof.recovery)
  const step = matchingStep(key, proof.code, now)
  if (step === null) return false
  const { rowCount } = await query('update people set totp_used_step = $2 where id = $1 and totp_used_step < $2', [
    personId,
    step,
  ])
  return rowCount === 1
}

async function isWaiting(query: Query, sessionId: Id): Promise<boolean> {
  const { rows } = await query(
    `select from browser_sessions
     where id = $1 and not is_complete and ended_at is null and expires_at > clock_timestamp() for update`,
    [sessionId],
  )
  return rows.length === 1
}

async function complete(query: Query, sessionId: Id): Promise<Secret> {
  const { secret, hash } = newToken()
  await query(
    `update browser_sessions set hash = $2, is_complete = true, second_factor_at = clock_timestamp(), seen_at = clock_timestamp(),
       expires_at = clock_timestamp() + interval '${SESSION_DAYS} days' where id = $1`,
    [sessionId, hash],
  )
  return secret
}

async function removeWithin(query: Query, personId: Id): Promise<void> {
  await query(
    'update people set totp = null, totp_since = null, totp_used_step = 0, factor_failures = 0 where id = $1',
    [personId],
  )
  await query('delete from recovery_codes where person_id = $1', [personId])
  await query('delete from remembered_browsers where person_id = $1', [personId])
}

async function recordFactor(query: Query, by: By, personId: Id, isOn: boolean): Promise<void> {
  const facts = (on: boolean) => ({ hasSecondFactor: on })
  await record(query, by, {
    ...{ action: 'person.second_factor_changed', subject: personId },
    ...{ before: facts(!isOn), after: facts(isOn) },
  })
}

const lockedRow = z.object({ email: z.string(), at: z.date() })

/** For an operator who has made sure who asks. Whom to tell; null where it was off. */
export async function takeFactorOff(query: Query, by: By, personId: Id): Promise<z.output<typeof lockedRow> | null> {
  const { rows } = await query(
    'select email, clock_timestamp() as at from people where id = $1 and totp_since is not null for no key update',
    [personId],
  )
  const locked = lockedRow.optional().parse(rows[0])
  if (locked === undefined) return null
  await removeWithin(query, personId)
  await recordFactor(query, by, personId, false)
  return locked
}
