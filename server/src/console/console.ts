import { TICKET_PATH } from '../account/ticket-path.ts'
import { fromLedger } from '../api/from-ledger.ts'
import { createCookies } from '../pages/cookies.ts'
import type { PageRoute } from '../pages/page-route.ts'
import { createVisits } from '../pages/visits.ts'
import { createFrame } from './pages/frame.ts'
import { ticketPage } from './pages/ticket.ts'
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
  const ticket = ticketPage(parts)
  return [
    ...overviewRoutes(given),
    ...requestRoutes(given),
    ...keyRoutes(given),
    { method: 'GET', path: TICKET_PATH, answer: () => ticket },
  ]
}
