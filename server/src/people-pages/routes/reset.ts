import { TOKEN } from '../../pages/cookies.ts'
import type { Filled } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { anything, emailAddress, newPassword, readForm } from '../../pages/read-form.ts'
import type { Visit } from '../../pages/visits.ts'
import type { RouteParts } from '../parts.ts'
import { orLater } from '../refusals.ts'
import { letIn } from '../signed-in.ts'
import { linkOverPage } from '../views/link-over.ts'
import { newPasswordPage, resetPage, resetSentPage } from '../views/reset.ts'
import { notSetUpPage } from '../views/sign-up.ts'

const MAIL_SECONDS = 30 * 60

export function resetRoutes(parts: RouteParts): readonly PageRoute[] {
  const { people, pages, visits, cookies, settings } = parts

  function askFor(visit: Visit): Promise<Page> | Page {
    const { form, formToken, visitor } = visit
    const values = { email: form.get('email') ?? '' }
    const show = (status: number, filled: Filled<'email'>) => resetPage(pages, { formToken, status, filled })
    const read = readForm(form, { email: emailAddress })
    if (!read.isGood) return show(400, { values, problems: read.problems })
    const { email } = read.fields
    return orLater(
      async () => {
        await people.askReset(visitor, email)
        return seeOther('/reset/sent', [cookies.putText('mail', email, { seconds: MAIL_SECONDS })])
      },
      (status, trouble) => show(status, { values, trouble }),
    )
  }

  /** The page behind the link; where that is over, what to do. */
  async function choosing(visit: Visit, shown: { status?: number; filled?: Filled<'password'> } = {}): Promise<Page> {
    const { params, visitor, path, formToken, returnTo } = visit
    const { token = '' } = params
    const found = TOKEN.test(token) ? await people.readReset(token, visitor) : null
    return found === null
      ? linkOverPage(pages, 'reset')
      : newPasswordPage(pages, { ...found, formToken, returnTo, path, ...shown })
  }

  async function choose(visit: Visit): Promise<Page> {
    const { params, form, visitor } = visit
    const { token = '' } = params
    const read = readForm(form, { email: anything, password: newPassword })
    if (!read.isGood) return choosing(visit, { status: 400, filled: { problems: read.problems } })
    return orLater(
      async () => {
        const signedIn = TOKEN.test(token) ? await people.reset(visitor, token, read.fields.password) : null
        return signedIn === null ? linkOverPage(pages, 'reset') : letIn(parts, visit, signedIn)
      },
      (status, trouble) => choosing(visit, { status, filled: { trouble } }),
    )
  }

  const { missing } = settings
  const closed = () => notSetUpPage(pages, { title: 'Passwords can’t be reset', what: 'A reset', missing })
  const isClosed = missing.length > 0
  return [
    visits.get('/reset', isClosed ? closed : ({ formToken }) => resetPage(pages, { formToken })),
    visits.post('/reset', isClosed ? closed : askFor),
    visits.get('/reset/sent', ({ cookie }) => resetSentPage(pages, { email: cookies.textIn(cookie, 'mail') ?? null })),
    visits.get('/reset/:token', (visit) => choosing(visit)),
    visits.post('/reset/:token', choose),
  ]
}
