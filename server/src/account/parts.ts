import type pg from 'pg'
import type { Turns } from '../api/turns.ts'
import type { FailuresByAddress } from '../identity/failures-by-address.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Links } from '../links/links.ts'
import type { People } from '../people/people.ts'
import type { SendMail } from '../storage/mail.ts'
import type { Tasks } from '../tasks/tasks.ts'
import type { Authenticate } from './authenticate.ts'
import type { RequestWatch } from './request-watch.ts'

/** What the handlers of the account API are made of. Each takes of it what it uses. */
export type AccountParts = {
  readonly pool: pg.Pool
  readonly ids: Ids
  /** PostgreSQL's time. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly authenticate: Authenticate
  readonly turns: Turns
  readonly requestWatch: RequestWatch
  readonly failures: FailuresByAddress
  readonly people: People
  readonly tasks: Pick<Tasks, 'listOfAccount'>
  readonly links: Pick<Links, 'listOfAccount' | 'revoke'>
  /** Throws a fault where scopes name what is not there. */
  readonly checkScopes: (scopes: readonly string[]) => Promise<void>
  readonly sendMail: SendMail
  /** Whom operators are written to at; null where nobody is. */
  readonly operatorMail: string | null
  /** Where people reach the pages. */
  readonly siteUrl: string
  /** The document as it is served. */
  readonly document: () => Promise<Buffer>
}
