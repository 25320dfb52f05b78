import type { AccountInProcess } from '../account/in-process.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Pages } from '../pages/page.ts'
import type { People } from '../people/people.ts'
import type { HeaderNames } from '../wording/header-names.ts'
import type { Frame } from './pages/frame.ts'
import type { ConsoleVisits } from './visits.ts'

export type ConsoleParts = {
  readonly pages: Pages
  /** Where the website is; undefined where nobody said, which is this machine. */
  readonly siteUrl: string | undefined
  /** Under which callers reach the gateway, and agents their tools; undefined where nobody said. */
  readonly baseUrl: string | undefined
  readonly mcpUrl: string | undefined
  /** What the operator calls the service in samples. */
  readonly provider: string
  readonly headerNames: HeaderNames
  /** The ids of what is sold. */
  readonly operations: readonly string[]
  readonly ids: Ids
  /** PostgreSQL's. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly account: AccountInProcess
  readonly sessionOf: People['sessionOf']
}

/** What every route of this room is made of. */
export type RouteParts = Omit<ConsoleParts, 'account' | 'sessionOf' | 'pages'> & {
  readonly frame: Frame
  readonly visits: ConsoleVisits
}
