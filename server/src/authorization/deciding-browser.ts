import { invalidRequest } from '../kernel/fault.ts'
import type { Cookies } from '../pages/cookies.ts'
import { markOf, newToken } from '../people/tokens.ts'
import type { Payload, States } from './states.ts'

/**
 * Which browser a client's request belongs to. The library's own cookies have the uid of the URL in them, and can be planted by another host of
 * the same domain; ours can't (`__Host-`). So what a client asks for is bound to one of ours when it begins, and goes on only in the session that decided.
 */

/** What the browser has of us, and the cookie to give it where it has nothing. */
export function browserIn(
  cookies: Cookies,
  header: string | undefined,
): { readonly mark: string; readonly cookie: string | null } {
  const known = cookies.tokenIn(header, 'asked')
  if (known !== undefined) return { mark: markOf(known), cookie: null }
  const { secret } = newToken()
  return { mark: markOf(secret.reveal()), cookie: cookies.put('asked', secret) }
}

/** Whether a request was begun in this browser. */
export function isBegunBy(cookies: Cookies, header: string | undefined, { begunBy }: Payload): boolean {
  const own = cookies.tokenIn(header, 'asked')
  return own !== undefined && begunBy === markOf(own)
}

type Resumed = { readonly uid: string; readonly cookie: string | undefined }

/** Refuses to go on with an answer in another browser than the one that began, or in another session than the one that decided. */
export async function requireDecider(
  { states, cookies }: { readonly states: Pick<States, 'find'>; readonly cookies: Cookies },
  { uid, cookie }: Resumed,
): Promise<void> {
  const state = await states.find('Interaction', uid)
  // The library says that there is none.
  if (state === null) return
  const session = cookies.tokenIn(cookie, 'session')
  const { decidedBy } = state.payload
  const isDecider = decidedBy === undefined || (session !== undefined && decidedBy === markOf(session))
  if (isDecider && isBegunBy(cookies, cookie, state.payload)) return
  throw invalidRequest('This was begun or decided in another browser. Go back to the app and start again.')
}
