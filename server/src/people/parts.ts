import type pg from 'pg'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Seal } from '../kernel/seal.ts'
import type { By } from '../storage/audit.ts'
import type { SendMail } from '../storage/mail.ts'
import type { Query } from '../storage/transaction.ts'
import type { Attempts } from './attempts.ts'
import type { Passwords } from './passwords.ts'

/** What the files of people are made of. Each takes of it what it uses. */
export type PeopleParts = {
  readonly pool: pg.Pool
  readonly ids: Ids
  /** Null without a master key: then nobody can turn a second factor on, and who has one can't sign in. */
  readonly seal: Seal | null
  readonly sendMail: SendMail
  readonly passwords: Passwords
  readonly attempts: Attempts
  /** Adds promotional credit to an account, in the transaction of what it is given for. */
  readonly credit: (query: Query, accountId: Id, creditId: Id, amount: Nanos) => Promise<void>
  /** Gives a new workspace its test money, in the transaction that makes it. */
  readonly testCredit: (query: Query, by: By, accountId: Id) => Promise<void>
  readonly settings: PeopleSettings
}

export type PeopleSettings = {
  /** Where people reach the pages, without a slash at its end. */
  readonly siteUrl: string
  /** Under which people know this installation. */
  readonly name: string
  readonly signUp: 'open' | 'closed'
  /** Whose addresses may sign up; empty for all. */
  readonly domains: readonly string[]
  /** What a mailbox is given once, for signing up. */
  readonly credit: Nanos
}
