import { z } from 'zod'
import { type Id, UUID } from '../kernel/ids.ts'
import { pageLimit } from './query-forms.ts'

/** Where a page ended, in a form that says nothing to anybody else. */
export function cursorOf(place: string): string {
  return Buffer.from(place).toString('base64url')
}

/** Where a page begins: what `read` makes of the place at which the one before ended; undefined for what no page ended at. */
export function cursorForm<Place>(read: (place: string) => Place | undefined) {
  return z
    .string()
    .max(200)
    .transform((text, context): Place => {
      const place = read(Buffer.from(text, 'base64url').toString('latin1'))
      if (place !== undefined) return place
      context.addIssue({ code: 'custom', message: 'is not a valid cursor: use one that this endpoint returned' })
      return z.NEVER
    })
    .optional()
    .meta({ description: 'The next_cursor of the page before.' })
}

/** What a query of every list has: how many, and where the page begins. */
export const PAGE = { limit: pageLimit, cursor: cursorForm((id): Id | undefined => (UUID.test(id) ? id : undefined)) }

export function pageOf<Body extends z.ZodType>(body: Body) {
  return z.strictObject({
    data: z.array(body),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: 'Where the next page begins; null where this is the last.' }),
  })
}

/** A page of rows, of which one more was read than is shown. */
export function pageFrom<Row extends { readonly id: Id }, Body>(
  rows: readonly Row[],
  limit: number,
  told: (row: Row) => Body,
): { data: Body[]; next_cursor: string | null } {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const hasMore = rows.length > limit && last !== undefined
  return { data: shown.map(told), next_cursor: hasMore ? cursorOf(last.id) : null }
}

/** A page of rows that were all read, by their ids: one that is gone meanwhile does not lead back to the first page. */
export function pageAmong<Row extends { readonly id: Id }, Body>(
  rows: readonly Row[],
  { limit, cursor = '' }: { readonly limit: number; readonly cursor?: Id | undefined },
  told: (row: Row) => Body,
): { data: Body[]; next_cursor: string | null } {
  const behind = rows.filter(({ id }) => id > cursor).sort((one, other) => (one.id < other.id ? -1 : 1))
  return pageFrom(behind.slice(0, limit + 1), limit, told)
}
