import { createCookies } from './cookies.ts'
import { FORM_TOKEN, formTokenOf, isOurForm } from './form-token.ts'

/** What a request of a script on our pages says of itself. */
type Sent = {
  readonly cookie: string | undefined
  readonly origin: string | undefined
  readonly fetchSite: string | undefined
  readonly formToken: string | undefined
  readonly host: string
}

/** How an API knows a browser in which somebody has signed in: by the cookie and the rule that the forms of the site have. */
export type BrowserRequests = {
  readonly sessionTokenIn: (cookie: string | undefined) => string | undefined
  /** What a script of ours sends back with everything that changes something. */
  readonly formTokenOf: (sessionToken: string) => string
  readonly isOurs: (sent: Sent) => boolean
}

export function createBrowserRequests({ siteUrl }: { readonly siteUrl: string | undefined }): BrowserRequests {
  const cookies = createCookies({ isSecure: siteUrl?.startsWith('https:') ?? false })
  const sessionTokenIn = (cookie: string | undefined) => cookies.tokenIn(cookie, 'session')
  return {
    sessionTokenIn,
    formTokenOf,
    isOurs({ cookie, origin, fetchSite, formToken, host }) {
      const own = { origin: siteUrl ?? `http://${host}`, cookie: sessionTokenIn(cookie) }
      return isOurForm({ origin, fetchSite, form: new Map([[FORM_TOKEN, formToken ?? '']]) }, own)
    },
  }
}
