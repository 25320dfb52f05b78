import { z } from 'zod'

/** Behind what a step goes on: the keys of the last row that was looked at. */
export const place = z.array(z.string())
export type Place = Readonly<z.output<typeof place>>

/** A walk through rows in the order of an index, one portion at a time. Each portion can be done again. */
export type Step = {
  /** By which whoever goes on finds it. */
  readonly name: string
  /** Where the next portion begins; null where there is none. */
  readonly portion: (after: Place | null) => Promise<Place | null>
}
