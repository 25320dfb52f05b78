import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { By } from '../storage/audit.ts'
import type { SendMail } from '../storage/mail.ts'
import { inTransaction } from '../storage/transaction.ts'
import { type Membership, workspacesOf } from './members.ts'
import { takeFactorOff } from './second-factor.ts'
import { type ListedSession, listSessions } from './sessions.ts'

/** What an operator sees of people, and does for them. */

const COLUMNS = `id, email, name, created_at as "createdAt", verified_at as "verifiedAt", password is not null as "hasPassword",
  totp_since is not null as "hasSecondFactor", blocked_at as "blockedAt",
  array(select issuer from person_identities where person_id = people.id order by issuer) as issuers`

const person = z.object({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  createdAt: z.date(),
  verifiedAt: z.date().nullable(),
  hasPassword: z.boolean(),
  hasSecondFactor: z.boolean(),
  /** Since when an operator has them blocked; null where none has. */
  blockedAt: z.date().nullable(),
  issuers: z.array(z.string()),
})

export type ListedPerson = Readonly<z.output<typeof person>>

/** The newest first, at most so many; those behind the one with the id `after`, where it is given. */
export async function listPeople(
  pool: pg.Pool,
  { after = null, most }: { readonly after?: Id | null; readonly most: number },
): Promise<readonly ListedPerson[]> {
  const { rows } = await pool.query(
    `select ${COLUMNS} from people where $1::uuid is null or id < $1 order by id desc limit $2`,
    [after, most],
  )
  return z.array(person).parse(rows)
}

export type ShownPerson = ListedPerson & {
  readonly workspaces: readonly Membership[]
  readonly sessions: readonly ListedSession[]
}

/** By id or by address; undefined where there is nobody. */
export async function showPerson(pool: pg.Pool, who: string): Promise<ShownPerson | undefined> {
  const { rows } = await pool.query(`select ${COLUMNS} from people where id::text = $1 or email = $1`, [
    who.toLowerCase(),
  ])
  const found = person.optional().parse(rows[0])
  if (found === undefined) return undefined
  const [workspaces, sessions] = await Promise.all([workspacesOf(pool, found.id), listSessions(pool, found.id)])
  return { ...found, workspaces, sessions }
}

type Notice = { readonly sendMail: SendMail; readonly siteUrl: string }

/**
 * Takes the second factor off for somebody who has lost it. The person is told where mail can be sent, because whoever asked may not
 * have been them. False where it was off.
 */
export function factorOff(pool: pg.Pool, by: By, personId: Id, notice: Notice | null): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const off = await takeFactorOff(query, by, personId)
    if (off === null) return false
    if (notice !== null)
      await notice.sendMail(query, {
        ...{ what: 'factor_changed', to: off.email, isOn: false, at: off.at.toISOString() },
        ...{ address: 'the operator', sessionsUrl: `${notice.siteUrl}/sessions` },
      })
    return true
  })
}
