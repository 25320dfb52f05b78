import type pg from 'pg'
import { z } from 'zod'
import type { Operation } from '../catalogue/operation.ts'
import { asUnavailable } from '../kernel/fault.ts'
import { type By, record } from '../storage/audit.ts'
import { type CacheParts, createCache } from '../storage/cache.ts'
import { inTransaction, queryOn, type Transactions } from '../storage/transaction.ts'

/** What operators have taken out of sale: an operation by itself, or every operation of a category. */
export type Switch = { readonly kind: 'operation' | 'category'; readonly name: string }

/** What is off. Everything else is on. */
export type Switches = { readonly isOff: (operation: Pick<Operation, 'id' | 'category'>) => boolean }

export type SwitchedOff = Switch & { readonly reason: string; readonly since: Date }

/** The switches as every call asks for them: from memory, and never older than a second. */
export type KeptSwitches = {
  readonly now: () => Switches | Promise<Switches>
  readonly close: () => void
}

/** There are fewer operations and categories than this. */
const MOST = 1_000

const rows = z.array(
  z.object({ kind: z.enum(['operation', 'category']), name: z.string(), reason: z.string(), since: z.date() }),
)

export async function listSwitchedOff(on: Transactions): Promise<readonly SwitchedOff[]> {
  const found = await queryOn(on)('select kind, name, reason, since from switched_off order by kind, name limit $1', [
    MOST,
  ])
  return rows.parse(found.rows)
}

export function switchesOf(off: readonly Switch[]): Switches {
  const names = (kind: Switch['kind']) => new Set(off.filter((one) => one.kind === kind).map(({ name }) => name))
  const [operations, categories] = [names('operation'), names('category')]
  return { isOff: ({ id, category }) => operations.has(id) || categories.has(category) }
}

export function createSwitches({ pool, ...parts }: CacheParts & { readonly pool: pg.Pool }): KeptSwitches {
  const cache = createCache<Switches>({
    ...parts,
    name: 'switches',
    topic: 'sold',
    load: async () => switchesOf(await listSwitchedOff(pool)),
    maxEntries: 1,
  })
  return {
    now: () => cache.peek(ALL) ?? cache.get(ALL).then((found) => found ?? NOTHING_OFF, asUnavailable),
    close: cache.close,
  }
}

const ALL = 'all'
const NOTHING_OFF = switchesOf([])

type Change = Switch & { readonly by: By; readonly reason: string }

/** Takes something out of sale, or says anew why it is; true where it was for sale before. Calls and tasks under way go on. */
export function switchOff(pool: pg.Pool, { kind, name, reason, by }: Change): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const { rows: before } = await query('select reason from switched_off where kind = $1 and name = $2 for update', [
      kind,
      name,
    ])
    await query(
      `insert into switched_off (kind, name, reason) values ($1, $2, $3)
       on conflict (kind, name) do update set reason = excluded.reason`,
      [kind, name, reason],
    )
    const action = `${kind}.switched_off` as const
    await record(query, by, { action, subject: name, before: before[0] ?? null, after: { reason } })
    return before[0] === undefined
  })
}

/** Sells it again; false where it was for sale. */
export function switchOn(pool: pg.Pool, { kind, name, reason, by }: Change): Promise<boolean> {
  return inTransaction(pool, async (query) => {
    const { rows: before } = await query(
      'delete from switched_off where kind = $1 and name = $2 returning reason as off_reason',
      [kind, name],
    )
    if (before[0] === undefined) return false
    const action = `${kind}.switched_on` as const
    await record(query, by, { action, subject: name, before: before[0], after: { reason } })
    return true
  })
}
