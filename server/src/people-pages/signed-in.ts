import type { Secret } from '../kernel/secret.ts'
import { type Page, seeOther } from '../pages/page.ts'
import { withReturnTo } from '../pages/return-to.ts'
import type { Visit } from '../pages/visits.ts'
import type { RouteParts } from './parts.ts'

/** Where somebody is led who did not want to go anywhere else. */
export const HOME = '/console'

const DAY_SECONDS = 24 * 60 * 60
const SESSION_SECONDS = 30 * DAY_SECONDS
export const REMEMBERED_SECONDS = 30 * DAY_SECONDS

type SignedIn = { readonly session: Secret; readonly needs: 'nothing' | 'second_factor' }

/**
 * Gives the browser its new session and leads on. Whatever it had before is over: a session that somebody else put there is worth nothing
 * after this.
 */
export async function letIn(
  { people, cookies }: Pick<RouteParts, 'people' | 'cookies'>,
  { session: before, returnTo, visitor }: Visit,
  { session, needs }: SignedIn,
): Promise<Page> {
  if (before !== null) await people.endSession(before.personId, before.id, visitor)
  const gone = [cookies.remove('visit'), cookies.remove('mail')]
  if (needs === 'second_factor')
    return seeOther(withReturnTo('/second-factor', returnTo), [cookies.put('session', session), ...gone])
  return seeOther(returnTo ?? HOME, [...(await sessionCookies({ people, cookies }, session)), ...gone])
}

/** What a browser keeps of a session that is complete. */
export async function sessionCookies(
  { people, cookies }: Pick<RouteParts, 'people' | 'cookies'>,
  session: Secret,
): Promise<readonly string[]> {
  const person = await people.sessionOf(session.reveal())
  const seconds = SESSION_SECONDS
  return [
    cookies.put('session', session, { seconds }),
    ...(person === null ? [] : [cookies.putViewer(person.name, seconds)]),
  ]
}
