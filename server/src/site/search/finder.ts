import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'

/** The longest question that is looked for. */
export const LONGEST_QUERY = 100

/** The field in which whoever looks for something says what. */
export function finder(query: string): Html {
  return html`<form class="finder" action="/search" role="search" aria-label="All of it"><div class="fb-affix"><span>${icon('search')}</span><input class="fb-input" id="q" name="q" type="search" maxlength="${LONGEST_QUERY}" value="${query}" placeholder="hold, 402, rerank" aria-label="Search guides, operations, models and errors"></div><button class="fb-button fb-button--large" type="submit">Search</button></form>`
}
