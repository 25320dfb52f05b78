import type { Nanos } from '../kernel/money.ts'
import type { Cookies } from '../pages/cookies.ts'
import type { Pages } from '../pages/page.ts'
import type { Visits } from '../pages/visits.ts'
import type { People } from '../people/people.ts'
import type { Issuer } from './views/sign-in.ts'

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
