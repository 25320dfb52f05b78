import { Fault } from '../../kernel/fault.ts'
import { TOKEN } from '../../pages/cookies.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { anything, readForm } from '../../pages/read-form.ts'
import type { SignedIn, Visit } from '../../pages/visits.ts'
import type { RouteParts } from '../parts.ts'
import { HOME } from '../signed-in.ts'
import { declinedPage, invitationPage } from '../views/invitation.ts'
import { linkOverPage } from '../views/link-over.ts'

export function invitationRoutes({ people, pages, visits, settings }: RouteParts): readonly PageRoute[] {
  async function show({ params: { token = '' }, path, formToken, session, visitor }: Visit): Promise<Page> {
    const invitation = TOKEN.test(token) ? await people.readInvitation(token, visitor) : null
    if (invitation === null) return linkOverPage(pages, 'invitation')
    // Who has still to pass a second factor is nobody yet.
    const viewer = session?.isComplete === true ? session : null
    return invitationPage(pages, { invitation, path, formToken, viewer, canSignUp: settings.missing.length === 0 })
  }

  async function decide({ params: { token = '' }, form, session, visitor }: SignedIn): Promise<Page> {
    const read = readForm(form, { decision: anything })
    const decision = read.isGood ? read.fields.decision : ''
    if (decision !== 'join' && decision !== 'decline') throw new Fault('invalid_request')
    const decided = TOKEN.test(token) ? await people.decideInvitation(session.personId, token, decision, visitor) : null
    if (decided === null) return linkOverPage(pages, 'invitation')
    return decision === 'join' ? seeOther(HOME) : declinedPage(pages)
  }

  return [visits.get('/invitations/:token', show), visits.postSignedIn('/invitations/:token', decide)]
}
