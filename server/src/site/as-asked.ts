import type { Page } from '../pages/page.ts'

/** A page that is another one next time: nobody keeps it. */
export function asAsked({ status, headers, body }: Page): Page {
  return { status, headers, body }
}
