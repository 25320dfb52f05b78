import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, ZERO } from '../kernel/money.ts'
import type { Secret } from '../kernel/secret.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { addressKey, networkKey, type Tried } from './attempts.ts'
import { sendOrPretend } from './letters.ts'
import { mailboxHash } from './mailbox.ts'
import { addLink, findLink, triedLink, useLink } from './mailed-links.ts'
import { readName, requireAddress } from './names.ts'
import { hasInvitation, isOpenTo, requireOpen } from './open-to.ts'
import type { PeopleParts } from './parts.ts'
import { openSession, type SignedIn } from './sessions.ts'
import { hashOf, hashOfToken } from './tokens.ts'
import { byPerson, type Visitor } from './visitor.ts'
import { welcome } from './welcome.ts'

/**
 * Sign-up: somebody types an address, and whoever reads its mail confirms it. Until then nothing is theirs. Whoever signs up learns
 * nothing about the address: what they see and the statements that run are the same whether it has an account or not.
 */

export type SignUp = {
  readonly name: string
  readonly email: string
  readonly password: string
  /** The token of an invitation to this address: with it, somebody signs up where sign-up is closed to others. */
  readonly invitation?: string | undefined
  /** The token of the browser in which this was typed. */
  readonly browser?: string | undefined
}

export type Verified = {
  readonly personId: Id
  /** A link by which a password is chosen, where the one that was typed at the sign-up does not count. */
  readonly choose: Secret | null
  /** In the browser in which the password was typed, which need not be typed again. */
  readonly signedIn: SignedIn | null
}

type Parts = Omit<PeopleParts, 'seal'>

export function createSignUp(parts: Parts) {
  const { pool, ids, sendMail, passwords, attempts, settings } = parts

  return {
    async signUp(visitor: Visitor, typed: SignUp): Promise<void> {
      const [name, email] = [readName(typed.name), requireAddress(typed.email)]
      if (!(await isInvited(visitor, email, typed.invitation))) requireOpen(settings, email)
      const tried = triedSignUp(visitor, email)
      await attempts.take(tried)
      const password = await passwords.hash(typed.password).catch(async (error: unknown) => {
        // Nothing was sent, so that nothing counts.
        await attempts.giveBack(tried)
        throw error
      })
      await inTransaction(pool, async (query) => {
        const person = await nameAddress(query, { id: ids.next(), email, name })
        const isNew = !person.isVerified
        const browser = hashOfToken(typed.browser ?? '')
        const personId = isNew ? person.id : null
        const link = await addLink(query, { kind: 'verify', personId, name, password, browser })
        const credit = await creditFor(query, email, settings)
        const { at, until, token } = link
        await sendMail(
          query,
          isNew
            ? { what: 'verify', to: email, link: `${settings.siteUrl}/verify/${token.reveal()}`, until, credit }
            : { what: 'registered', to: email, ...pages(settings.siteUrl), at, address: visitor.address },
        )
      })
    },

    /** Sends the link again to who has not confirmed yet. */
    async resendVerification(visitor: Visitor, typed: string): Promise<void> {
      const email = requireAddress(typed)
      const { limits } = attempts
      await attempts.take([
        { limit: limits.verificationAgain, key: hashOf(email) },
        { limit: limits.verificationsOfAddress, key: hashOf(email) },
        { limit: limits.askFromAddress, key: addressKey(visitor) },
        { limit: limits.askFromNetwork, key: networkKey(visitor) },
      ])
      await inTransaction(pool, async (query) => {
        const waiting = await findWaiting(query, email)
        const { until, token } = await addLink(query, { kind: 'verify', ...waiting })
        const credit = await creditFor(query, email, settings)
        const link = `${settings.siteUrl}/verify/${token.reveal()}`
        const letter = { what: 'verify' as const, to: email, link, until, credit }
        await sendOrPretend(query, sendMail, { letter, isMeant: waiting.personId !== null })
      })
    },

    /** For the page behind a link. Changes nothing, because what guards a mailbox opens links before people do. */
    readVerification(token: string, visitor: Visitor): Promise<{ readonly email: string } | null> {
      return attempts.guess(triedLink(attempts, visitor), async () => {
        const hash = hashOfToken(token)
        if (hash === null) return null
        const { rows } = await pool.query(
          `select email from mailed_links link join people on people.id = person_id
           where hash = $1 and kind = 'verify' and used_at is null and link.expires_at > clock_timestamp() and verified_at is null`,
          [hash],
        )
        return emailRow.optional().parse(rows[0]) ?? null
      })
    },

    /** The address is theirs. Once: null for a link that was used, is too old or is none of ours. */
    verify(visitor: Visitor, token: string, browser?: string): Promise<Verified | null> {
      return attempts.guess(triedLink(attempts, visitor), async () => {
        const hash = hashOfToken(token)
        if (hash === null) return null
        return inTransaction(pool, (query) => confirm(query, visitor, { hash, browser: hashOfToken(browser ?? '') }))
      })
    },
  }

  async function isInvited(visitor: Visitor, email: string, invitation: string | undefined): Promise<boolean> {
    const hash = hashOfToken(invitation ?? '')
    if (hash === null) return false
    const found = await attempts.guess(triedLink(attempts, visitor), async () => {
      const open = await hasInvitation((text, values = []) => pool.query(text, [...values]), { email, hash })
      return open ? true : null
    })
    return found !== null
  }

  /** A sign-up sends the first link: the next one is sent a minute after it, and a second sign-up is not kept waiting by that. */
  function triedSignUp(visitor: Visitor, email: string): readonly Tried[] {
    const { limits } = attempts
    return [
      { limit: limits.signUpFromAddress, key: addressKey(visitor) },
      { limit: limits.signUpFromNetwork, key: networkKey(visitor) },
      { limit: limits.signUpsOfAddress, key: hashOf(email) },
      { limit: limits.signUpsOfMailbox, key: mailboxHash(email) },
      { limit: { ...limits.verificationAgain, most: limits.signUpsOfAddress.most }, key: hashOf(email) },
    ]
  }

  type Link = { readonly hash: Buffer; readonly browser: Buffer | null }

  async function confirm(query: Query, visitor: Visitor, { hash, browser }: Link): Promise<Verified | null> {
    const found = await findLink(query, 'verify', hash)
    if (found === null) return null
    const { personId } = found
    const email = await lockUnverified(query, personId)
    if (email === null) return null
    const typed = await useLink(query, { kind: 'verify', hash, personId })
    if (typed === null || typed.name === null) return null
    // Who reads the mail may not be who signed up: then a password that somebody else knows must not come with the account.
    const isTheirs = isSameBrowser(typed.browser, browser)
    await query('update people set verified_at = clock_timestamp(), name = $2, password = $3 where id = $1', [
      personId,
      typed.name,
      isTheirs ? typed.password : null,
    ])
    await welcome(query, parts, byPerson(personId, visitor), { id: personId, email, name: typed.name })
    const choose = isTheirs ? null : (await addLink(query, { kind: 'reset', personId })).token
    const mayEnter = isTheirs && browser !== null
    const signedIn = mayEnter ? await openSession(query, ids, visitor, { personId, password: typed.password }) : null
    return { personId, choose, signedIn }
  }
}

/** Who has shown no browser at either end has shown the same. */
function isSameBrowser(one: Buffer | null, other: Buffer | null): boolean {
  return one === null || other === null ? one === other : one.equals(other)
}

const emailRow = z.object({ email: z.string() })

const person = z
  .object({ id: z.string(), is_verified: z.boolean() })
  .transform(({ id, is_verified: isVerified }) => ({ id, isVerified }))

type Named = { readonly id: Id; readonly email: string; readonly name: string }

/** The person with this address; a new one, who is forgotten after a day, where there is none. */
async function nameAddress(query: Query, { id, email, name }: Named): Promise<z.output<typeof person>> {
  const { rows } = await query(
    `insert into people as row (id, email, name) values ($1, $2, $3)
     on conflict (email) do update set created_at = case when row.verified_at is null then clock_timestamp() else row.created_at end
     returning id, verified_at is not null as is_verified`,
    [id, email, name],
  )
  return person.parse(rows[0])
}

/** Locks somebody who has not confirmed yet. */
export async function lockUnverified(query: Query, personId: Id): Promise<string | null> {
  const { rows } = await query('select email from people where id = $1 and verified_at is null for no key update', [
    personId,
  ])
  return emailRow.optional().parse(rows[0])?.email ?? null
}

const waitingRow = z.object({
  personId: z.string(),
  name: z.string(),
  password: z.string().nullable(),
  browser: z.instanceof(Buffer).nullable(),
})
type Waiting = z.output<typeof waitingRow> | { readonly personId: null }

/** What was typed at the latest sign-up of somebody who has not confirmed yet. */
async function findWaiting(query: Query, email: string): Promise<Waiting> {
  const { rows } = await query(
    `select person_id as "personId", link.name, link.password, link.browser from people join mailed_links link on person_id = people.id
     where email = $1 and verified_at is null and kind = 'verify' and link.name is not null
     order by link.created_at desc limit 1`,
    [email],
  )
  return waitingRow.optional().parse(rows[0]) ?? { personId: null }
}

/** What is given for confirming, as a letter says it; null where the mailbox had it before, is invited, or is given none. */
async function creditFor(query: Query, email: string, settings: PeopleParts['settings']): Promise<string | null> {
  const { credit: amount } = settings
  const { rows } = await query('select from sign_up_credits where mailbox = $1', [mailboxHash(email)])
  const isInvited = await hasInvitation(query, { email })
  if (amount <= ZERO || rows.length > 0 || isInvited || !isOpenTo(settings, email)) return null
  return formatUsd(amount).replace(/0{1,7}$/, '')
}

function pages(siteUrl: string) {
  return { signInUrl: `${siteUrl}/sign-in`, resetUrl: `${siteUrl}/reset` }
}
