import { z } from 'zod'
import { revokeGrantsWithin } from '../grants/grants.ts'
import type { Id } from '../kernel/ids.ts'
import { record } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { addressKey, networkKey } from './attempts.ts'
import { forgetFailures, triedByPerson } from './factor-failures.ts'
import { sendOrPretend } from './letters.ts'
import { addLink, findLink, triedLink, useLink } from './mailed-links.ts'
import { requireAddress } from './names.ts'
import type { PeopleParts } from './parts.ts'
import { endSessionsWithin, openSession, type SignedIn } from './sessions.ts'
import { hashOf, hashOfToken } from './tokens.ts'
import { byPerson, type Visitor } from './visitor.ts'

/** Another password: for who has forgotten theirs, by a link in a mail, and for who knows it. */

type Parts = Pick<PeopleParts, 'pool' | 'ids' | 'sendMail' | 'passwords' | 'attempts' | 'settings'>

export type Change = {
  readonly old: string
  readonly new: string
  /** The session that goes on. */
  readonly sessionId?: Id
}

export function createResets({ pool, ids, sendMail, passwords, attempts, settings }: Parts) {
  return {
    /** Sends a link, where the address has an account; whoever asks sees no difference. */
    async askReset(visitor: Visitor, typed: string): Promise<void> {
      const email = requireAddress(typed)
      const { limits } = attempts
      const asker = [
        { limit: limits.askFromAddress, key: addressKey(visitor) },
        { limit: limits.askFromNetwork, key: networkKey(visitor) },
      ]
      const key = hashOf(email)
      await attempts.takeOneOf([
        [{ limit: limits.resetsOfAddress, key }, ...asker],
        [{ limit: limits.hourlyResetOfAddress, key }, ...asker],
      ])
      await inTransaction(pool, async (query) => {
        const { rows } = await query('select id from people where email = $1 and verified_at is not null', [email])
        const personId = idRow.optional().parse(rows[0])?.id ?? null
        const { token, at, until } = await addLink(query, { kind: 'reset', personId })
        const link = `${settings.siteUrl}/reset/${token.reveal()}`
        const letter = { what: 'reset' as const, to: email, link, until, at, address: visitor.address }
        await sendOrPretend(query, sendMail, { letter, isMeant: personId !== null })
      })
    },

    /** For the page behind a link: whose password it is, and how many sessions end with it. Changes nothing. */
    readReset(token: string, visitor: Visitor): Promise<{ readonly email: string; readonly sessions: number } | null> {
      return attempts.guess(triedLink(attempts, visitor), async () => {
        const hash = hashOfToken(token)
        if (hash === null) return null
        const { rows } = await pool.query(
          `select email, (select count(*)::integer from browser_sessions session
             where session.person_id = people.id and ended_at is null and session.expires_at > clock_timestamp()) as sessions
           from mailed_links link join people on people.id = link.person_id
           where link.hash = $1 and kind = 'reset' and used_at is null and link.expires_at > clock_timestamp()`,
          [hash],
        )
        return resetRow.optional().parse(rows[0]) ?? null
      })
    },

    /** Sets a password by a link, once, and signs in with it. Every session before it ends, and every browser is forgotten. */
    reset(visitor: Visitor, token: string, typed: string): Promise<SignedIn | null> {
      return attempts.guess(triedLink(attempts, visitor), async () => {
        const hash = hashOfToken(token)
        // Nobody has a hash made of a password without a link.
        if (hash === null || (await findLink(poolQuery, 'reset', hash)) === null) return null
        const password = await passwords.hash(typed)
        return inTransaction(pool, async (query) => {
          const found = await findLink(query, 'reset', hash)
          if (found === null || !(await lockPerson(query, found.personId))) return null
          const { personId } = found
          if ((await useLink(query, { kind: 'reset', hash, personId })) === null) return null
          await setPassword(query, { personId, password, visitor, exceptId: null })
          // Whoever knew the old one may have used up what its owner may try.
          await forgetFailures(query, personId)
          await attempts.forget(triedByPerson(attempts, personId), query)
          return openSession(query, ids, visitor, { personId, password })
        })
      })
    },

    /** False where the old one is wrong. Every other session ends. Codes are counted on: whoever guesses them knows the old one too. */
    async changePassword(personId: Id, change: Change, visitor: Visitor): Promise<boolean> {
      const tried = [{ limit: attempts.limits.passwordOfPerson, key: hashOf(personId) }]
      const changed = await attempts.guess(tried, async () => {
        const { rows } = await pool.query('select password from people where id = $1', [personId])
        const old = passwordRow.optional().parse(rows[0])?.password ?? null
        const whose = { mailbox: hashOf(personId), address: addressKey(visitor) }
        if (!(await passwords.verify(change.old, old, whose))) return null
        const password = await passwords.hash(change.new)
        return inTransaction(pool, async (query) => {
          // Another change may have come first.
          if (!(await lockPerson(query, personId, old))) return null
          // Each is told by mail, so that they are few.
          await attempts.take([{ limit: attempts.limits.passwordChangesOfPerson, key: hashOf(personId) }], query)
          await setPassword(query, { personId, password, visitor, exceptId: change.sessionId ?? null })
          return true
        })
      })
      return changed !== null
    },
  }

  function poolQuery(text: string, values: readonly unknown[] = []) {
    return pool.query(text, [...values])
  }

  type NewPassword = {
    readonly personId: Id
    readonly password: string
    readonly visitor: Visitor
    readonly exceptId: Id | null
  }

  async function setPassword(query: Query, { personId, password, visitor, exceptId }: NewPassword): Promise<void> {
    const { rows } = await query(
      'update people set password = $2 where id = $1 returning email, clock_timestamp() as at',
      [personId, password],
    )
    const { email: to, at } = changedRow.parse(rows[0])
    // Links that were asked for before work no longer.
    await query("delete from mailed_links where person_id = $1 and kind = 'reset' and used_at is null", [personId])
    const ended = await endSessionsWithin(query, personId, exceptId)
    // Whoever knew the old one may have let clients in with it.
    const grantsRevoked = (await revokeGrantsWithin(query, { personId })).length
    await record(query, byPerson(personId, visitor), {
      ...{ action: 'person.password_changed', subject: personId },
      ...{ before: {}, after: { sessionsEnded: ended, grantsRevoked } },
    })
    const resetUrl = `${settings.siteUrl}/reset`
    const letter = { to, at: at.toISOString(), address: visitor.address, resetUrl }
    await sendMail(query, { what: 'password_changed', ...letter })
  }
}

const idRow = z.object({ id: z.string() })
const resetRow = z.object({ email: z.string(), sessions: z.int() })
const passwordRow = z.object({ password: z.string().nullable() })
const changedRow = z.object({ email: z.string(), at: z.date() })

/** False where the person is no more, or has another password than the one given. */
async function lockPerson(query: Query, personId: Id, password: string | null = null): Promise<boolean> {
  const { rows } = await query(
    `select from people where id = $1 and verified_at is not null and ($2::text is null or password = $2)
     for no key update`,
    [personId, password],
  )
  return rows.length === 1
}
