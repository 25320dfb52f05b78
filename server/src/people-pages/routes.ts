import { createCookies } from '../pages/cookies.ts'
import type { Pages } from '../pages/page.ts'
import type { PageRoute } from '../pages/page-route.ts'
import { createVisits } from '../pages/visits.ts'
import type { People } from '../people/people.ts'
import type { SiteSettings } from './parts.ts'
import { accountRoutes } from './routes/account.ts'
import { type ConsentParts, consentRoutes } from './routes/consent.ts'
import { deviceRoutes } from './routes/device.ts'
import { factorSetupRoutes } from './routes/factor-setup.ts'
import { grantRoutes } from './routes/grants.ts'
import { invitationRoutes } from './routes/invitation.ts'
import { issuerRoutes, type SignInIssuer } from './routes/issuer.ts'
import { mandateRoutes } from './routes/mandates.ts'
import { resetRoutes } from './routes/reset.ts'
import { secondFactorRoutes } from './routes/second-factor.ts'
import { signInRoutes } from './routes/sign-in.ts'
import { signUpRoutes } from './routes/sign-up.ts'

type Parts = {
  readonly people: People
  readonly pages: Pages
  /** Where the website is; undefined where nobody said, which is this machine. */
  readonly siteUrl: string | undefined
  readonly settings: SiteSettings
  /** Null where people sign in by their passwords alone. */
  readonly issuer: SignInIssuer | null
  /** Null where clients can't be let in. */
  readonly authorization?: Pick<ConsentParts, 'server' | 'pool' | 'ids' | 'seal' | 'offer'> | null
}

/** How people get in, and what they see of themselves there. */
export function createSiteRoutes(given: Parts): readonly PageRoute[] {
  const { people, pages, siteUrl, settings, issuer, authorization = null } = given
  const cookies = createCookies({ isSecure: siteUrl?.startsWith('https:') ?? false })
  const visits = createVisits({ people, cookies, siteUrl })
  const parts = { people, pages, cookies, visits, settings }
  return [
    ...signInRoutes(parts),
    ...(issuer === null ? [] : issuerRoutes(parts, issuer)),
    ...signUpRoutes(parts),
    ...resetRoutes(parts),
    ...secondFactorRoutes(parts),
    ...factorSetupRoutes(parts),
    ...invitationRoutes(parts),
    ...accountRoutes({ ...parts, hasGrants: authorization !== null }),
    ...(authorization === null ? [] : authorizationRoutes({ ...parts, ...authorization })),
  ]
}

/** What people decide about clients. */
function authorizationRoutes(parts: ConsentParts): readonly PageRoute[] {
  return [...consentRoutes(parts), ...deviceRoutes(parts), ...grantRoutes(parts), ...mandateRoutes(parts)]
}
