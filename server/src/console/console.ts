import { fromLedger } from '../api/from-ledger.ts'
import { createCookies } from '../pages/cookies.ts'
import type { PageRoute } from '../pages/page-route.ts'
import { createVisits } from '../pages/visits.ts'
import { createFrame } from './pages/frame.ts'
import type { ConsoleParts } from './parts.ts'
import { keyRoutes } from './routes/keys.ts'
import { overviewRoutes } from './routes/overview.ts'
import { requestRoutes } from './routes/requests.ts'
import { createConsoleVisits } from './visits.ts'

/** What members of a workspace see and do there, by pages that are complete without a script. */
export function createConsole(parts: ConsoleParts): readonly PageRoute[] {
  const { siteUrl, sessionOf } = parts
  const cookies = createCookies({ isSecure: siteUrl?.startsWith('https:') ?? false })
  const frame = createFrame(parts)
  const visits = createConsoleVisits({
    ...parts,
    frame,
    visits: createVisits({ people: { sessionOf: (token) => fromLedger(sessionOf(token)) }, cookies, siteUrl }),
  })
  const given = { ...parts, frame, visits }
  return [...overviewRoutes(given), ...requestRoutes(given), ...keyRoutes(given)]
}
