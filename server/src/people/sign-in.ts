import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { record } from '../storage/audit.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'
import { addressKey, networkKey, type Tried } from './attempts.ts'
import { mailboxHash, readAddress, splitAddress } from './mailbox.ts'
import { cutName } from './names.ts'
import { hasInvitation, requireOpen } from './open-to.ts'
import type { PeopleParts } from './parts.ts'
import type { Whose } from './passwords.ts'
import { openSession, type SignedIn } from './sessions.ts'
import { lockUnverified } from './sign-up.ts'
import { byPerson, type Visitor } from './visitor.ts'
import { welcome } from './welcome.ts'

/** Sign-in by password, and by an issuer that the operator trusts. */

export type Typed = { readonly email: string; readonly password: string; readonly remembered?: string | undefined }

/** What an issuer says of somebody who has signed in there. */
export type Claims = {
  readonly issuer: string
  readonly subject: string
  readonly email: string
  readonly emailVerified: boolean
  readonly name: string
}

type Parts = Omit<PeopleParts, 'seal' | 'sendMail'>

export function createSignIn(parts: Parts) {
  const { pool, ids, passwords, attempts, settings } = parts

  return {
    /**
     * Null where it is wrong, whatever of it is: one hash is made either way. The narrow limits count wrong passwords alone; wider ones count all, because each takes a hash.
     */
    signIn(visitor: Visitor, { email: typed, password, remembered }: Typed): Promise<SignedIn | null> {
      const email = readAddress(typed) ?? typed
      const whose = { mailbox: mailboxHash(email), address: addressKey(visitor) }
      const compare = async () => {
        const { rows } = await pool.query(
          'select id, password from people where email = $1 and verified_at is not null and password is not null',
          [email],
        )
        const person = passwordRow.optional().parse(rows[0])
        const isRight = await passwords.verify(password, person?.password ?? null, whose)
        if (person === undefined || !isRight) return null
        const proof = { personId: person.id, password: person.password, remembered }
        return inTransaction(pool, (query) => openSession(query, ids, visitor, proof))
      }
      return attempts.guess(triedSignIn(visitor, email), compare, anySignIn(visitor, whose))
    },

    /** Null where the issuer does not vouch for an address that we would have to believe. */
    signInByIssuer(visitor: Visitor, claims: Claims): Promise<SignedIn | null> {
      return inTransaction(pool, async (query) => {
        const personId = (await findIdentity(query, claims)) ?? (await joinIdentity(query, visitor, claims))
        return personId === null ? null : openSession(query, ids, visitor, { personId, password: null })
      })
    },
  }

  function anySignIn(visitor: Visitor, { mailbox, address }: Whose): readonly Tried[] {
    const { limits } = attempts
    return [
      { limit: limits.anySignInOfMailbox, key: mailbox },
      { limit: limits.anySignInFromAddress, key: address },
      { limit: limits.anySignInFromNetwork, key: networkKey(visitor) },
    ]
  }

  function triedSignIn(visitor: Visitor, email: string): readonly Tried[] {
    const { limits } = attempts
    return [
      { limit: limits.signInOfMailbox, key: mailboxHash(email) },
      { limit: limits.signInFromAddress, key: addressKey(visitor) },
      { limit: limits.signInFromNetwork, key: networkKey(visitor) },
    ]
  }

  /** Joins somebody new at the issuer to the person with that address, or makes one. */
  async function joinIdentity(query: Query, visitor: Visitor, claims: Claims): Promise<Id | null> {
    const email = readAddress(claims.email)
    if (email === null || !claims.emailVerified) return null
    const personId = await personWith(query, visitor, { email, name: claims.name })
    const { rowCount } = await query(
      'insert into person_identities (issuer, subject, person_id) values ($1, $2, $3) on conflict do nothing',
      [claims.issuer, claims.subject, personId],
    )
    // Somebody came with the same identity at the same time: what they made is what counts.
    if (rowCount !== 1) return findIdentity(query, claims)
    const after = { issuer: claims.issuer }
    const by = byPerson(personId, visitor)
    await record(query, by, { action: 'person.identity_joined', subject: personId, before: null, after })
    return personId
  }

  async function personWith(query: Query, visitor: Visitor, { email, name }: NameAndEmail): Promise<Id> {
    const { rows } = await query('select id from people where email = $1 and verified_at is not null', [email])
    const known = idRow.optional().parse(rows[0])
    if (known !== undefined) return known.id
    // The issuer vouches for the address, so that an invitation to it is theirs.
    if (!(await hasInvitation(query, { email }))) requireOpen(settings, email)
    const called = cutName(name) ?? splitAddress(email)[0]
    const { rows: made } = await query(
      `insert into people as row (id, email, name) values ($1, $2, $3)
       on conflict (email) do update set created_at = row.created_at returning id`,
      [ids.next(), email, called],
    )
    const { id } = idRow.parse(made[0])
    // Somebody else may have confirmed it just before.
    if ((await lockUnverified(query, id)) === null) return id
    await query('update people set verified_at = clock_timestamp(), name = $2 where id = $1', [id, called])
    // Whoever typed the address here before us has not shown that it is theirs, and their password counts for nothing.
    await query("delete from mailed_links where person_id = $1 and kind = 'verify'", [id])
    await welcome(query, parts, byPerson(id, visitor), { id, email, name: called })
    return id
  }
}

type NameAndEmail = { readonly email: string; readonly name: string }

const idRow = z.object({ id: z.string() })
const passwordRow = z.object({ id: z.string(), password: z.string() })

async function findIdentity(query: Query, { issuer, subject }: Claims): Promise<Id | null> {
  const { rows } = await query('select person_id as id from person_identities where issuer = $1 and subject = $2', [
    issuer,
    subject,
  ])
  return idRow.optional().parse(rows[0])?.id ?? null
}
