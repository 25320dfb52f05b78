import { z } from 'zod'

/** A whole number as a query writes it, and as a contract describes it. */
export function wholeNumber(least: number, most: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(least).max(most))
    .meta({ type: 'integer', minimum: least, maximum: most, pattern: undefined })
}

/** How many of a list a page has: 1 to 100, 20 where the query does not say. */
export const pageLimit = wholeNumber(1, 100).prefault('20').meta({ description: 'How many a page has.' })
