import type pg from 'pg'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { HELD } from './mortal.ts'
import type { Mortal } from './mortal-pack.ts'
import type { Fate } from './mortal-told.ts'

export type Orphan = {
  readonly id: Id
  readonly owner_id: Id
  readonly amount: bigint
  /** Null where nobody has found it. */
  readonly unsettled_at_ms: number | null
}

export async function openCalls(pool: pg.Pool): Promise<readonly Orphan[]> {
  const { rows } = await pool.query<Orphan>(
    `select id, owner_id, amount, (extract(epoch from unsettled_at) * 1000)::float8 as unsettled_at_ms from holds`,
  )
  return rows
}

type Booked = { readonly outcome: string; readonly charged: bigint }

/** What the ledger has charged for each call, less what it gave back. */
async function bookedCharges(pool: pg.Pool): Promise<ReadonlyMap<Id, Booked>> {
  const { rows } = await pool.query<Booked & { id: Id }>(
    `select c.id, c.outcome, (c.amount + coalesce(sum(e.charged), 0))::bigint as charged
     from charges c left join entries e on e.corrects = c.id group by c.id, c.amount, c.outcome`,
  )
  return new Map(rows.map((row) => [row.id, row]))
}

/** What the dead and the living told of their calls beside what the ledger says of them. */
export type Reckoning = {
  /** Where they disagree; an empty list is what the ledger promises. */
  readonly disagreements: readonly string[]
  /** Callers that were told how their call ended, and those of them whose call was charged. */
  readonly toldEnded: number
  readonly toldCharged: number
  /** Ended although the process died before anybody was told. */
  readonly endedUntold: number
  readonly orphans: number
  /** Callers that were told that it could not be done. */
  readonly faults: number
  /** At what point of the call its process died. */
  readonly diedAt: Readonly<Record<'begin' | 'stay' | 'end', number>>
}

export async function reckon(pool: pg.Pool, mortals: readonly Mortal[]): Promise<Reckoning> {
  const found = (await verifyLedger(pool)).map(({ promise, rows }) => `${promise}: ${rows.join(', ')}`)
  const holds = new Map((await openCalls(pool)).map((hold) => [hold.id, hold]))
  const booked = await bookedCharges(pool)
  const known = new Set<Id>()
  const diedAt = { begin: 0, stay: 0, end: 0 }
  let [toldEnded, toldCharged, endedUntold, faults, chargedByTelling, chargedInAll] = [0, 0, 0, 0, 0n, 0n]

  for (const mortal of mortals) {
    for (const fate of mortal.told().fates.values()) {
      known.add(fate.id)
      const call = { isHeld: holds.has(fate.id), booked: booked.get(fate.id) }
      const problem = problemOf(fate, mortal.killedAtMs() !== undefined, call)
      if (problem !== undefined) found.push(`${fate.id}, ${fate.state}: ${problem}; the ledger says ${inWords(call)}`)
      if (fate.state === 'ended') {
        toldEnded += 1
        if (fate.charged !== 0n) toldCharged += 1
        chargedByTelling += fate.charged ?? 0n
      } else if (call.booked !== undefined && fate.state === 'ending') {
        endedUntold += 1
        chargedByTelling += call.booked.charged
      }
      if (fate.state === 'faulted') faults += 1
      if (fate.state === 'invoked') diedAt.begin += 1
      if (fate.state === 'begun') diedAt.stay += 1
      if (fate.state === 'ending') diedAt.end += 1
    }
  }
  for (const [id, { charged }] of booked) {
    chargedInAll += charged
    if (!known.has(id)) found.push(`nobody knows of charge ${id}`)
  }
  if (chargedInAll !== chargedByTelling)
    found.push(`${chargedInAll} were charged, ${chargedByTelling} can be accounted for`)
  for (const id of holds.keys()) if (!known.has(id)) found.push(`nobody knows of hold ${id}`)
  return { disagreements: found, toldEnded, toldCharged, endedUntold, orphans: holds.size, faults, diedAt }
}

type InLedger = { readonly isHeld: boolean; readonly booked: Booked | undefined }

/** What is wrong with how the ledger has a call, given what its caller was told last. */
function problemOf(fate: Fate, isDead: boolean, { isHeld, booked }: InLedger): string | undefined {
  switch (fate.state) {
    case 'ended':
      if (isHeld) return 'it still holds money'
      if (booked === undefined) return 'its charge is lost'
      return booked.charged === fate.charged && booked.outcome === fate.outcome
        ? undefined
        : `told ${fate.charged} ${fate.outcome}`
    case 'refused':
      return isHeld || (booked?.charged ?? 0n) > 0n ? 'it was refused' : undefined
    case 'faulted':
      if (isHeld && !isDead) return 'nobody ended it'
      return (booked?.charged ?? 0n) > 0n ? 'its caller was told that nothing was charged' : undefined
    case 'invoked':
      if (!isDead) return 'its caller was told nothing'
      return booked === undefined ? undefined : 'it ended before it began'
    case 'begun':
      if (!isDead) return 'its caller was told nothing'
      return isHeld && booked === undefined ? undefined : 'its money is not held'
    case 'ending': {
      if (!isDead) return 'its caller was told nothing'
      if (isHeld) return booked === undefined ? undefined : 'it is open and ended'
      if (booked === undefined) return 'its money is neither held nor charged'
      const most = fate.asked === null ? 0n : fate.asked < HELD ? fate.asked : HELD
      return booked.charged === most ? undefined : `it asked for ${fate.asked}`
    }
  }
}

function inWords({ isHeld, booked }: InLedger): string {
  const charge = booked === undefined ? 'no charge' : `${booked.outcome} ${booked.charged}`
  return `${isHeld ? 'a hold' : 'no hold'} and ${charge}`
}
