import type pg from 'pg'
import type { Asked } from '../../server/src/calls/call.ts'
import { type Calls, createCalls, NO_USAGE } from '../../server/src/calls/calls.ts'
import { createFastPath } from '../../server/src/calls/fast-path.ts'
import { createMoneyQuery } from '../../server/src/calls/money-query.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { median } from '../bench.ts'

export type Accounts = readonly {
  readonly id: Id
  readonly credentialId: Id
  readonly allowanceId: Id
  /** Those of a workspace, a member, the key, a tag and an end user. */
  readonly budgets: readonly Id[]
}[]

/** What a call counts against: the allowance of its key, nothing, or budgets of all five kinds, saying whose spend it is. */
type Counted = 'key' | 'none' | 'five'

export type Ours = {
  readonly accounts: Accounts
  /** Begins and ends calls, so many of them in flight. */
  readonly pairs: (count: number, inFlight: number, pick: () => number) => Promise<void>
  /** Begins so many, then ends them. Between the two, and after, what the caller wants to know is asked. */
  readonly phases: <T>(
    count: number,
    inFlight: number,
    pick: () => number,
    counted: Counted,
    ask: () => T,
  ) => Promise<[T, T, T]>
  /** Medians in milliseconds of a begin alone and of one bare commit, taken in turn. */
  readonly latencies: (count: number, bare: pg.Client) => Promise<{ readonly begin: number; readonly commit: number }>
  readonly close: () => Promise<void>
}

export const ids = createIds({ clock: systemClock })
const PLENTY = 10n ** 15n

export async function seedAccounts(client: pg.Client, count: number): Promise<Accounts> {
  const accounts = Array.from({ length: count }, () => ({
    id: ids.next(),
    credentialId: ids.next(),
    allowanceId: ids.next(),
    budgets: Array.from({ length: 5 }, () => ids.next()),
  }))
  const column = (name: 'id' | 'credentialId' | 'allowanceId') => accounts.map((account) => account[name])
  const ownIds = column('id')
  await client.query(`insert into accounts (id, mode, credited) select unnest($1::uuid[]), 'live', ${PLENTY}`, [ownIds])
  await client.query(`insert into bare_accounts (id, balance) select unnest($1::uuid[]), ${PLENTY}`, [ownIds])
  await client.query('insert into credentials (id, account_id) select * from unnest($1::uuid[], $2::uuid[])', [
    column('credentialId'),
    ownIds,
  ])
  await client.query(
    `insert into allowances (id, account_id, period, amount) select a, b, 'month', ${PLENTY} from unnest($1::uuid[], $2::uuid[]) t (a, b)`,
    [column('allowanceId'), ownIds],
  )
  await client.query(
    `insert into allowances (id, account_id, period, amount) select a, b, 'month', ${PLENTY} from unnest($1::uuid[], $2::uuid[]) t (a, b)`,
    [accounts.flatMap(({ budgets }) => budgets), accounts.flatMap(({ id, budgets }) => budgets.map(() => id))],
  )
  await client.query('analyze')
  return accounts
}

export function createOurs(url: string, accounts: Accounts): Ours {
  const pools = createPools({ url: new Secret(url), log: silentLog })
  const calls = createCalls({
    query: createMoneyQuery(pools.money),
    ownerId: ids.next(),
    clock: systemClock,
    log: silentLog,
    path: createFastPath({ clock: systemClock, log: silentLog }),
  })

  async function pairs(count: number, inFlight: number, pick: () => number): Promise<void> {
    let left = count
    const caller = async () => {
      while (left > 0) {
        left -= 1
        await end(calls, await begin(calls, accounts, pick()))
      }
    }
    await Promise.all(Array.from({ length: inFlight }, caller))
  }

  async function phases<T>(
    count: number,
    inFlight: number,
    pick: () => number,
    counted: Counted,
    ask: () => T,
  ): Promise<[T, T, T]> {
    const begun: BegunCall[] = []
    const each = async (work: () => Promise<unknown>) => {
      let left = count
      const caller = async () => {
        for (; left > 0; ) {
          left -= 1
          await work()
        }
      }
      await Promise.all(Array.from({ length: inFlight }, caller))
    }
    const first = ask()
    await each(async () => begun.push(await begin(calls, accounts, pick(), counted)))
    const second = ask()
    await each(async () => {
      const one = begun.pop()
      if (one !== undefined) await end(calls, one)
    })
    return [first, second, ask()]
  }

  async function latencies(count: number, bare: pg.Client) {
    const times = { begin: [] as number[], commit: [] as number[] }
    for (let at = 0; at < count; at += 1) {
      let startedMs = performance.now()
      await bare.query({ name: 'commit', text: 'insert into bare_charges values ($1, $1, 1)', values: [ids.next()] })
      times.commit.push(performance.now() - startedMs)
      startedMs = performance.now()
      const begun = await begin(calls, accounts, at)
      times.begin.push(performance.now() - startedMs)
      await end(calls, begun)
    }
    return { begin: median(times.begin), commit: median(times.commit) }
  }

  return { accounts, pairs, phases, latencies, close: () => pools.close() }
}

type BegunCall = { readonly id: Id; readonly accountId: Id; readonly asked: Asked }

const ATTRIBUTION = {
  model: 'sandbox/echo',
  endUser: { id: ids.next(), label: 'alice' },
  tags: [{ name: 'team', value: 'search' }],
}
const WINDOWS = [{ group: 'all', seconds: 60, requestLimit: 2_000_000_000, tokenLimit: 2 ** 50 }]

async function begin(calls: Calls, accounts: Accounts, at: number, counted: Counted = 'key'): Promise<BegunCall> {
  const account = accounts[at]
  if (account === undefined) throw new Error('no such account')
  const id = ids.next()
  const allowances = { key: [account.allowanceId], none: [], five: account.budgets }[counted]
  const { outcome } = await calls.begin({
    id,
    accountId: account.id,
    credentialId: account.credentialId,
    operation: 'rerank',
    hold: {
      amount: nanos(1_000n),
      terms: '{"token":"50/1000000"}',
      allowances,
      own: counted === 'key' ? account.allowanceId : undefined,
    },
    tokens: 100,
    windows: WINDOWS,
    claims: [],
    ...(counted === 'five' && { attribution: ATTRIBUTION }),
  })
  if (outcome !== 'begun') throw new Error(`a call was refused: ${outcome}`)
  return { id, accountId: account.id, asked: { credentialId: account.credentialId, windows: WINDOWS } }
}

async function end(calls: Calls, { id, accountId, asked }: BegunCall): Promise<void> {
  const usage = { ...NO_USAGE, executed: true, inputTokens: 80, outputTokens: 10, value: nanos(700n) }
  await calls.end({ id, accountId, amount: nanos(700n), forgiven: false, usage, asked })
}
