import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import type { Sums } from '../model/account.ts'
import type { pg } from './world.ts'

/** Looks at an account over connections of its own, over and over while others write it. */
export type Watcher = {
  readonly look: (accountId: Id) => void
  /** Looks at nothing meanwhile: a look at everything and a truncate of the same tables can deadlock. */
  readonly aside: (work: () => Promise<void>) => Promise<void>
  readonly stop: () => Promise<Watched>
}

export type Watched = {
  readonly looks: number
  readonly looksAtEverything: number
  readonly differentSums: number
  readonly inDebt: number
  readonly lapsed: number
  readonly broken: readonly string[]
}

/** Everything is looked at this seldom: it takes as long as many looks at a row. */
const EVERYTHING_EVERY = 150

export function watch(pool: pg.Pool): Watcher {
  let accountId: Id | undefined
  let stopped = false
  let looking = Promise.resolve()
  let [looks, looksAtEverything, inDebt, lapsed] = [0, 0, 0, 0]
  const states = new Set<string>()
  const broken: string[] = []

  async function look(id: Id): Promise<void> {
    const { rows } = await pool.query<Sums>(
      'select credited, debt, charged, held, promo, lapsed from accounts where id = $1',
      [id],
    )
    for (const sums of rows) {
      looks += 1
      states.add(Object.values(sums).join(' '))
      if (sums.debt > 0n) inDebt += 1
      if (sums.lapsed > 0n) lapsed += 1
      const free = sums.credited + sums.debt - sums.charged - sums.held
      if (free < 0n) broken.push(`${id} spends more than it has`)
      if (sums.debt > 0n && free > 0n) broken.push(`${id} is in debt and has free money`)
      if (sums.promo > free + sums.held || sums.lapsed > sums.held) broken.push(`${id} has too much promotional credit`)
    }
    if (looks % EVERYTHING_EVERY !== 0) return
    looksAtEverything += 1
    for (const { promise } of await verifyLedger(pool, [id])) broken.push(`${id}: ${promise}`)
  }

  async function run(): Promise<void> {
    while (!stopped) {
      // Nearly as often as the row changes, and no more: whoever looks takes from the same processor.
      await new Promise((resolve) => setTimeout(resolve, 3))
      if (accountId !== undefined) looking = look(accountId)
      await looking
    }
  }

  const running = run()
  return {
    look: (id) => {
      accountId = id
    },
    async aside(work) {
      accountId = undefined
      await looking
      await work()
    },
    async stop() {
      stopped = true
      await running
      return { looks, looksAtEverything, differentSums: states.size, inDebt, lapsed, broken }
    },
  }
}
