import type { Call } from '../../server/src/calls/call.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import type { Pools } from '../../server/src/storage/pools.ts'
import { newAccount } from '../model/account.ts'
import * as credits from '../model/credits.ts'
import * as oracle from '../model/ledger-model.ts'
import * as orphans from '../model/orphans.ts'
import { ids, makeAccount, makeAllowance, makeCredential } from './world.ts'

/** A few accounts, and two processes that run their calls, in PostgreSQL and in the model. */
export type World = {
  readonly pools: Pools
  readonly model: oracle.Model
  readonly accounts: readonly Id[]
  readonly credentials: readonly { readonly id: Id; readonly accountId: Id }[]
  readonly allowances: readonly Id[]
  readonly owners: readonly Id[]
  readonly sweeper: Id
  readonly begun: Call[]
  readonly reversals: { readonly id: Id; readonly of: Id }[]
  readonly wins: { readonly id: Id; readonly of: Id }[]
  readonly givenBack: { readonly id: Id; readonly of: Id }[]
}

export const LEASE_SECONDS = 1_000_000
const START = 60n

export async function makeWorld(pools: Pools): Promise<World> {
  const model = oracle.createModel()
  const pool = pools.rest
  const [first, second] = [await makeAccount(pool, 0n), await makeAccount(pool, 0n)]
  for (const id of [first, second]) model.accounts.set(id, newAccount())
  const credentials = []
  for (const accountId of [first, first, second]) {
    const id = await makeCredential(pool, accountId)
    model.credentials.set(id, { accountId, active: true })
    credentials.push({ id, accountId })
  }
  const allowances = []
  for (const [accountId, period, amount] of [
    [first, 'total', 100n],
    [first, 'month', 80n],
    [second, 'total', 120n],
  ] as const) {
    const id = await makeAllowance(pool, accountId, period, amount)
    model.allowances.set(id, { accountId, period, amount })
    allowances.push(id)
  }
  const [owners, sweeper] = [[ids.next(), ids.next()], ids.next()]
  for (const owner of [...owners, sweeper]) await pool.query('select renew_lease($1, $2)', [owner, LEASE_SECONDS])
  await pool.query("update owners set held_since = held_since - interval '1 hour' where id = $1", [sweeper])
  for (const owner of owners) orphans.live(model, owner)
  const entryId = ids.next()
  await creditAccount(pool, { entryId, accountId: first, kind: 'payment', amount: nanos(START) })
  credits.credit(model, entryId, first, START)
  const lists = { begun: [], reversals: [], wins: [], givenBack: [] }
  return { pools, model, accounts: [first, second], credentials, allowances, owners, sweeper, ...lists }
}

/** Takes away what verbs that look at every account would still find. */
export async function forgetWorld({ pools: { rest }, accounts }: World): Promise<void> {
  await rest.query('delete from promotions where account_id = any ($1)', [accounts])
  await rest.query('delete from holds where account_id = any ($1)', [accounts])
  await rest.query('delete from owners')
}

/** Time passes by moving what was written into the past, here and there alike. */
export async function passTime(
  { pools: { rest }, model, accounts, credentials }: World,
  seconds: number,
): Promise<void> {
  const back = 'make_interval(secs => $2)'
  await rest.query(`update promotions set expires_at = expires_at - ${back} where account_id = any ($1)`, [
    accounts,
    seconds,
  ])
  await rest.query(`update holds set unsettled_at = unsettled_at - ${back} where account_id = any ($1)`, [
    accounts,
    seconds,
  ])
  await rest.query(`update claims set kept_until = kept_until - ${back} where credential_id = any ($1)`, [
    credentials.map(({ id }) => id),
    seconds,
  ])
  const us = BigInt(seconds) * 1_000_000n
  for (const { grants } of model.accounts.values())
    for (const grant of grants) if (grant.expiresAtUs < credits.NEVER_US) grant.expiresAtUs -= us
  for (const hold of model.holds.values()) if (hold.unsettledAtUs !== null) hold.unsettledAtUs -= us
  for (const place of [...model.claims.values()].flat()) if (place.keptUntilUs !== null) place.keptUntilUs -= us
}
