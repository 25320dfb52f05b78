import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Asked } from './page-route.ts'

/** By what our pages call it in a form. */
export const FORM_TOKEN = 'form_token'

/**
 * What a form has to bring to be one of ours: a page of somebody else's knows neither this nor the cookie that it is made of, and of the
 * one the other can't be made.
 */
export function formTokenOf(cookie: string): string {
  return createHmac('sha256', cookie).update('form').digest('base64url')
}

/** Whether a form was sent by a page of ours that this very browser was shown. */
export function isOurForm(
  { origin, fetchSite, form }: Pick<Asked, 'origin' | 'fetchSite' | 'form'>,
  own: { readonly origin: string; readonly cookie: string | undefined },
): boolean {
  // Every browser of today says one or the other with a form, and most say both.
  if (origin === undefined && fetchSite === undefined) return false
  if (origin !== undefined && origin !== own.origin) return false
  if (fetchSite !== undefined && fetchSite !== 'same-origin') return false
  return own.cookie !== undefined && isSame(form.get(FORM_TOKEN) ?? '', formTokenOf(own.cookie))
}

function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}
