import type { Pages } from '../http/pages/page.ts'
import type { People } from '../identity/people/people.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Cookies } from './cookies.ts'
import type { Issuer } from './pages/sign-in.ts'
import type { Visits } from './visits.ts'

/** What every route of this room is made of. */
export type RouteParts = {
  readonly people: People
  readonly pages: Pages
  readonly visits: Visits
  readonly cookies: Cookies
  readonly settings: SiteSettings
}

export type SiteSettings = {
  /** Whether people may make accounts by themselves. */
  readonly isSignUpOpen: boolean
  /** What the operator has to configure before they can; nothing where it is closed on purpose. */
  readonly missing: readonly string[]
  /** What a new account is given. */
  readonly credit: Nanos
  readonly issuer: Issuer | null
}
