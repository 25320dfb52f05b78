import type { Fault } from '../kernel/fault.ts'
import { html } from '../kernel/html.ts'
import type { Page, Pages } from './page.ts'

export type FaultPage = (fault: Fault, requestId: string) => Page

/** What a page says first; the rest are told by their own sentence. */
const TITLES: Readonly<Record<number, string>> = {
  400: 'This request is not valid',
  403: 'This is not allowed',
  404: 'There is no such page',
  405: 'This can’t be done here',
  408: 'The request took too long',
  413: 'The request is too large',
  415: 'This request is not valid',
  421: 'Wrong host',
  429: 'Too many requests',
  431: 'The request is too large',
  500: 'Something failed on our side',
  503: 'We can’t answer this now',
}

/** The number, what happened, what to do, and by what name to ask about it. */
export function createFaultPage(pages: Pick<Pages, 'wide'>): FaultPage {
  return (fault, requestId) => {
    const title = TITLES[fault.status] ?? 'This did not work'
    return pages.wide({
      kind: 'fault',
      status: fault.status,
      title,
      main: html`<div><p class="fault__code">${fault.status}</p><h1>${title}</h1>
<p class="fault__say">${sentenceOf(fault)}</p></div>
<section aria-labelledby="asked"><h2 id="asked">If you report it</h2>
<p class="fault__id"><span class="fb-dim">Code</span> <code>${fault.code}</code></p>
<p class="fault__id"><span class="fb-dim">Request</span> <span class="fb-code">${requestId}</span></p></section>`,
    })
  }
}

/** A person asks for pages, not for endpoints. */
function sentenceOf({ code, message }: Fault): string {
  if (code === 'route_not_found') return 'There is no page at this address. Check the address.'
  return message
}
