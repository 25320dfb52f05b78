import type { Begin, Wish } from '../gateway/begin.ts'
import { rateHeaders } from '../limits/headers.ts'

export type Admission = Pick<Wish, 'id' | 'caller'>

/** Counts a request that costs nothing. What its key's limits leave, as headers, where it is within them. */
export async function admit(
  begin: Begin,
  { id, caller }: Admission,
  counts: string | Wish['operation'],
): Promise<Readonly<Record<string, string>>> {
  const operation = typeof counts === 'string' ? { id: counts, limits: [], isForAll: true } : counts
  const { rates } = await begin({ id, caller, operation, hold: null, tokens: 0, claims: [] })
  return rateHeaders(rates)
}
