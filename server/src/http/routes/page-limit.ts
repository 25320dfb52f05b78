import { z } from 'zod'

/** How many of a list a page has, as a query says it: 1 to 100, 20 where it does not. */
export const pageLimit = z
  .string()
  .regex(/^\d{1,3}$/)
  .transform(Number)
  .pipe(z.int().min(1).max(100))
  .prefault('20')
