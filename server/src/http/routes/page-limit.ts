import { wholeNumber } from './query-forms.ts'

/** How many of a list a page has, as a query says it: 1 to 100, 20 where it does not. */
export const pageLimit = wholeNumber(1, 100).prefault('20').meta({ description: 'How many a page has.' })
