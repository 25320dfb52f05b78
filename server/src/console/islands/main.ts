import { startCopying } from './copy.ts'
import { followDecision } from './decision.ts'
import { waitForFirstCall } from './first-call.ts'
import { waitForEnd } from './open-request.ts'
import { liveRequests } from './requests.ts'
import { showTicket } from './ticket.ts'

/** What lives on our pages. Each island finds its place in the page, which is complete without it. */
startCopying()
const islands = {
  'first-call': waitForFirstCall,
  requests: liveRequests,
  'open-request': waitForEnd,
  ticket: showTicket,
}
for (const [name, start] of Object.entries(islands))
  for (const place of document.querySelectorAll<HTMLElement>(`[data-island="${name}"]`)) start(place)
for (const form of document.querySelectorAll<HTMLFormElement>('form[data-island="decision"]')) followDecision(form)
