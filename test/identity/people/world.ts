import assert from 'node:assert/strict'
import type pg from 'pg'
import { makeMasterKey } from '../../../harness/seed.ts'
import { PATIENCE_MS } from '../../../harness/until.ts'
import { systemClock } from '../../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../../server/src/kernel/ids.ts'
import { type Nanos, usd } from '../../../server/src/kernel/money.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { creditWithin } from '../../../server/src/ledger/credit.ts'
import { giveTestCredit } from '../../../server/src/ledger/test-credit.ts'
import { createAttempts, LIMITS, type Limits } from '../../../server/src/people/attempts.ts'
import { createPasswords, type Passwords } from '../../../server/src/people/passwords.ts'
import { createPeople, type People } from '../../../server/src/people/people.ts'
import type { Session } from '../../../server/src/people/sessions.ts'
import { type Visitor, visitorOf } from '../../../server/src/people/visitor.ts'
import { createSendMail, type Mail, mail } from '../../../server/src/storage/mail.ts'
import { readPayload } from '../../../server/src/storage/outbox.ts'
import { createPools } from '../../../server/src/storage/pools.ts'
import { silentLog } from '../../../server/src/telemetry/log.ts'

export const SITE = 'https://site.example.com'
export const PASSWORD = 'correct horse battery'
export const CREDIT = usd('2')

export type Options = {
  readonly masterKey?: Secret
  readonly signUp?: 'open' | 'closed'
  readonly domains?: readonly string[]
  readonly credit?: Nanos
  readonly limits?: Partial<Limits>
  readonly passwords?: Passwords
}

export type World = ReturnType<typeof connectPeople>

/** People on a real database: what they are sent is read from the outbox. */
export function connectPeople(databaseUrl: string, options: Options = {}) {
  const { signUp = 'open', domains = [], credit = CREDIT, masterKey = makeMasterKey() } = options
  // Long enough that only what hangs meets it, however busy the machine is.
  const patience = { connectTimeoutMs: PATIENCE_MS, restStatementTimeoutMs: PATIENCE_MS }
  const pools = createPools({ url: new Secret(databaseUrl), log: silentLog, ...patience })
  const pool = pools.rest
  const ids = createIds({ clock: systemClock })
  const seal = createSeal({ current: masterKey })
  const attempts = createAttempts({ pool, limits: { ...LIMITS, ...options.limits } })
  const people = createPeople({
    ...{ pool, ids, seal, attempts },
    sendMail: createSendMail({ ids, seal }),
    passwords: options.passwords ?? createPasswords({ waiting: 10_000 }),
    credit: async (query, accountId, entryId, amount) => {
      await creditWithin(query, { entryId, accountId, amount, kind: 'promotion' })
    },
    testCredit: async (query, by, accountId) => {
      await giveTestCredit(query, by, { accountId, amount: credit, nowMs: systemClock.nowMs() })
    },
    settings: { siteUrl: SITE, name: 'Farebox', signUp, domains, credit },
  })

  /** What an address was sent, or those of a pattern, the newest last. */
  async function letters(to: string | RegExp): Promise<readonly Mail[]> {
    const { rows } = await pool.query("select id, payload, sealed from outbox where kind = 'mail' order by id")
    return rows
      .map((row) => mail.parse(readPayload(row, seal)))
      .filter((letter) => (typeof to === 'string' ? letter.to === to : to.test(letter.to)))
  }

  /** The token in the newest letter of a kind. */
  async function tokenFor(to: string, what: Mail['what']): Promise<string> {
    const letter = (await letters(to)).findLast((one) => one.what === what)
    assert.ok(letter !== undefined && 'link' in letter, `${to} was sent no ${what}`)
    return tokenIn(letter.link)
  }

  /** Somebody who has signed up and confirmed. */
  async function join(email: string, { name = 'Some One' }: { name?: string } = {}): Promise<Id> {
    await people.signUp(anotherVisitor(), { name, email, password: PASSWORD })
    const verified = await people.verify(anotherVisitor(), await tokenFor(email, 'verify'))
    return verified?.personId ?? assert.fail(`${email} was not verified`)
  }

  /** A session that is complete, of who has no second factor. */
  async function signedIn(email: string): Promise<string> {
    const result = await people.signIn(anotherVisitor(), { email, password: PASSWORD })
    assert.equal(result?.needs, 'nothing')
    return result?.session.reveal() ?? assert.fail()
  }

  /** The session of somebody who has just signed in, and has no second factor yet. */
  async function sessionFor(email: string): Promise<Session> {
    return (await people.sessionOf(await signedIn(email))) ?? assert.fail()
  }

  return {
    sessionFor,
    pool,
    pools,
    people,
    attempts,
    seal,
    masterKey,
    letters,
    tokenFor,
    join,
    signedIn,
    close: pools.close,
  }
}

export function tokenIn(link: string): string {
  return link.slice(link.lastIndexOf('/') + 1)
}

let visitors = 0
/** From another network each time, so that no limit of addresses is met by accident. */
export function anotherVisitor(): Visitor {
  visitors += 1
  return visitorOf(`10.${(visitors >> 8) & 255}.${visitors & 255}.1`, 'a browser')
}

let names = 0
export function anotherAddress(): string {
  names += 1
  return `person-${names}@example.com`
}

/** The only workspace of somebody who has just signed up. */
export async function workspaceOf(people: People, personId: Id): Promise<Id> {
  const [first, ...others] = await people.workspacesOf(personId)
  assert.equal(others.length, 0)
  return first?.id ?? assert.fail('there is no workspace')
}

/** A member of a workspace, who was invited and has joined. */
export async function joinAs(
  { people, join, tokenFor }: World,
  role: Parameters<People['invite']>[2]['role'],
  { by, workspaceId }: { readonly by: Id; readonly workspaceId: Id },
): Promise<{ readonly personId: Id; readonly memberId: Id; readonly email: string }> {
  const email = anotherAddress()
  const personId = await join(email)
  await people.invite(by, workspaceId, { email, role }, anotherVisitor())
  await people.decideInvitation(personId, await tokenFor(email, 'invitation'), 'join', anotherVisitor())
  const members = await people.membersOf(workspaceId)
  const member = members.find((one) => one.personId === personId)
  return { personId, memberId: member?.id ?? assert.fail('did not join'), email }
}

export async function countOf(pool: pg.Pool, sql: string, values: readonly unknown[] = []): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(`select (${sql})::integer as n`, [...values])
  return rows[0]?.n ?? assert.fail()
}
