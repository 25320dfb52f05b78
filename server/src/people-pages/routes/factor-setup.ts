import { Fault } from '../../kernel/fault.ts'
import { Secret } from '../../kernel/secret.ts'
import type { Filled } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { anything, factorCode, readForm, recoveryCode } from '../../pages/read-form.ts'
import type { SignedIn } from '../../pages/visits.ts'
import type { RouteParts } from '../parts.ts'
import { orLater } from '../refusals.ts'
import { signInAgain } from '../sign-in-again.ts'
import { factorBeginPage, factorOffPage, factorOnPage, recoveryCodesPage } from '../views/factor-setup.ts'

const PATH = '/account/second-factor'
const WRONG = 'This is not the current code. Wait for the next one, and check that the clock of your phone is right.'
const WRONG_OFF = 'This code is not valid, or was already used.'
/** What the page that began has shown. It comes back with the code, so that who mistypes it need not scan again. */
const KEY_URI =
  /^otpauth:\/\/totp\/[A-Za-z0-9%._~!'()*:-]{1,600}\?secret=(?<key>[A-Z2-7]{16,64})&[A-Za-z0-9%._~*+=&-]{1,600}$/

export function factorSetupRoutes({ people, pages, visits }: RouteParts): readonly PageRoute[] {
  function begun({ formToken }: SignedIn, uri: Secret, status = 200, filled: Filled<'code'> = {}): Page {
    const key = KEY_URI.exec(uri.reveal())?.groups?.key
    if (key === undefined) throw new Fault('invalid_request')
    return factorBeginPage(pages, { formToken, status, filled, uri, secret: new Secret(key) })
  }

  function confirm(visit: SignedIn): Promise<Page> | Page {
    const { form, session, visitor } = visit
    const uri = new Secret(form.get('uri') || 'none')
    const read = readForm(form, { code: factorCode, uri: anything })
    if (!read.isGood) return begun(visit, uri, 400, { problems: read.problems })
    return orLater(
      async () => {
        const confirmed = await people.confirmSecondFactor(session, read.fields.code, visitor)
        if (confirmed === null) return begun(visit, uri, 400, { problems: { code: WRONG } })
        return recoveryCodesPage(pages, confirmed.recoveryCodes)
      },
      (status, trouble) => begun(visit, uri, status, { trouble }),
    )
  }

  function showOn({ formToken }: SignedIn, status = 200, filled: Filled<'code'> = {}): Page {
    return factorOnPage(pages, { formToken, status, filled })
  }

  function remove(visit: SignedIn): Promise<Page> | Page {
    const { form, session, visitor } = visit
    const read = readForm(form, { code: recoveryCode })
    if (!read.isGood) return showOn(visit, 400, { problems: read.problems })
    const asCode = factorCode.safeParse(read.fields.code)
    const proof = asCode.success ? { code: asCode.data } : { recovery: read.fields.code }
    return orLater(
      async () => {
        const isOff = await people.removeSecondFactor(session.personId, proof, visitor)
        return isOff ? seeOther('/sessions?note=factor-off') : showOn(visit, 400, { problems: { code: WRONG_OFF } })
      },
      (status, trouble) => showOn(visit, status, { trouble }),
    )
  }

  return [
    visits.getSignedIn(PATH, (visit) =>
      visit.session.hasSecondFactor ? showOn(visit) : factorOffPage(pages, { formToken: visit.formToken }),
    ),
    visits.postSignedIn(`${PATH}/begin`, async (visit) => {
      if (visit.session.hasSecondFactor) return seeOther(PATH)
      const beginning = await people.beginSecondFactor(visit.session)
      return beginning === null ? signInAgain(PATH, 'change') : begun(visit, beginning.uri)
    }),
    visits.postSignedIn(`${PATH}/confirm`, confirm),
    visits.postSignedIn(`${PATH}/remove`, remove),
  ]
}
