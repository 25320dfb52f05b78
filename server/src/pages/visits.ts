import { Fault } from '../kernel/fault.ts'
import type { People } from '../people/people.ts'
import type { Session } from '../people/sessions.ts'
import { newToken } from '../people/tokens.ts'
import type { Cookies } from './cookies.ts'
import { formTokenOf, isOurForm } from './form-token.ts'
import { type Page, seeOther } from './page.ts'
import type { Asked, PageRoute } from './page-route.ts'
import { parseReturnTo, RETURN_TO, withReturnTo } from './return-to.ts'

/** A request for a page, or a form that is certainly ours, and who it is from. */
export type Visit = Asked & {
  /** Whose browser it is; null for nobody. Where a second factor is still missing, it is not complete. */
  readonly session: Session | null
  /** The token of that session. */
  readonly sessionToken: string | undefined
  /** What the forms of a page that is shown now have to bring back. */
  readonly formToken: string
  /** What this browser has of us, by which it is known from others. */
  readonly browser: string
  /** Where the visitor wants to be in the end, if that is a page of ours. */
  readonly returnTo: string | undefined
}

/** One of somebody who is signed in. */
export type SignedIn = Visit & { readonly session: Session; readonly sessionToken: string }

export type Visits = ReturnType<typeof createVisits>

type Answer<V> = (visit: V) => Page | Promise<Page>

type Parts = {
  readonly people: Pick<People, 'sessionOf'>
  readonly cookies: Cookies
  /** Where the website is; undefined where nobody said, which is this machine. */
  readonly siteUrl: string | undefined
}

/** Makes routes of what is to be shown: every one knows who asks, and no form that is not ours gets as far as being read. */
export function createVisits({ people, cookies, siteUrl }: Parts) {
  /** Of a session where there is one, so that a form that was shown to somebody is theirs alone. */
  const cookieOf = ({ cookie }: Asked) => cookies.tokenIn(cookie, 'session') ?? cookies.tokenIn(cookie, 'visit')

  async function visitOf(asked: Asked, bound: string): Promise<Visit> {
    const sessionToken = cookies.tokenIn(asked.cookie, 'session')
    const session = sessionToken === undefined ? null : await people.sessionOf(sessionToken)
    const returnTo = parseReturnTo(asked.form.get(RETURN_TO) ?? asked.query.get(RETURN_TO))
    return { ...asked, session, sessionToken, browser: bound, formToken: formTokenOf(bound), returnTo }
  }

  const routes = {
    get(path: string, answer: Answer<Visit>): PageRoute {
      return {
        method: 'GET',
        path,
        async answer(asked) {
          const known = cookieOf(asked)
          if (known !== undefined) return answer(await visitOf(asked, known))
          const { secret } = newToken()
          const page = await answer(await visitOf(asked, secret.reveal()))
          return { ...page, cookies: [...(page.cookies ?? []), cookies.put('visit', secret)] }
        },
      }
    },

    post(path: string, answer: Answer<Visit>): PageRoute {
      return {
        method: 'POST',
        path,
        async answer(asked) {
          const cookie = cookieOf(asked)
          const origin = siteUrl ?? `http://${asked.host}`
          if (cookie === undefined || !isOurForm(asked, { origin, cookie })) throw new Fault('form_refused')
          return answer(await visitOf(asked, cookie))
        },
      }
    },
  }

  return {
    ...routes,
    /** For who is signed in and has passed all that it takes; the others are led there and back. */
    getSignedIn: (path: string, answer: Answer<SignedIn>) => routes.get(path, signedIn(cookies, answer)),
    postSignedIn: (path: string, answer: Answer<SignedIn>) => routes.post(path, signedIn(cookies, answer)),
  }
}

function signedIn(cookies: Cookies, answer: Answer<SignedIn>): Answer<Visit> {
  return (visit) => {
    const { session, sessionToken, method, path } = visit
    // A form that was sent too late is not sent again by going back to where it stood.
    const back = method === 'GET' ? path : undefined
    if (session === null || sessionToken === undefined)
      return seeOther(withReturnTo('/sign-in', parseReturnTo(back)), cookies.removeSession())
    if (!session.isComplete) return seeOther(withReturnTo('/second-factor', parseReturnTo(back)))
    return answer({ ...visit, session, sessionToken })
  }
}
