import type pg from 'pg'
import { listKeys } from '../identity/listed-keys.ts'
import { formatUsd, ZERO } from '../kernel/money.ts'
import { type Balance, readBalance } from '../ledger/balance.ts'
import { listAccountPrices } from '../pricing/prices.ts'
import { showWorkspace } from '../workspaces/workspaces.ts'
import { keyLine, readKeys } from './key-view.ts'
import { limitsLine } from './limits.ts'

/** All of a customer account. */
export async function readAccount(pool: pg.Pool, id: string) {
  const { live: _, test: __, keys: ___, ...workspace } = await showWorkspace(pool, id)
  const { liveAccountId, testAccountId } = workspace
  const [live, test] = [await readBalance(pool, liveAccountId), await readBalance(pool, testAccountId)]
  const ownPrices = await listAccountPrices(pool, [liveAccountId, testAccountId])
  return { ...workspace, live, test, ownPrices, keys: await readKeys(pool, await listKeys(pool, id)) }
}

/** A line for each thing. */
export function accountLines(account: Awaited<ReturnType<typeof readAccount>>): readonly string[] {
  const { id, name, createdAt, tier, limits, plan, liveAccountId, testAccountId, ownPrices, keys, suspendedAt } =
    account
  return [
    `Account ${id}, ${name}, since ${createdAt.toISOString()}`,
    ...(suspendedAt === null
      ? []
      : [
          `Suspended since ${suspendedAt.toISOString()}: ${account.suspendedReason ?? ''} To end it: farebox accounts resume ${id}`,
        ]),
    `Tier ${tier}, plan ${plan}: each key has ${limitsLine(limits)}`,
    moneyLine('Live', liveAccountId, account.live),
    moneyLine('Test', testAccountId, account.test),
    ...ownPrices.map(
      ({ accountId, what, price }) =>
        `Own price${accountId === testAccountId ? ' of test money' : ''}: ${what} ${price}`,
    ),
    ...(keys.length === 0 ? ['There are no keys.'] : ['Keys:', ...keys.map((key) => `  ${keyLine(key)}`)]),
  ]
}

function moneyLine(mode: string, accountId: string, { free, held, promo, debt, charged }: Balance): string {
  const more = [
    ...(promo > ZERO ? [`${formatUsd(promo)} of it promotional`] : []),
    ...(held > ZERO ? [`${formatUsd(held)} held`] : []),
    ...(debt > ZERO ? [`owes ${formatUsd(debt)} and is suspended`] : []),
  ]
  return `${mode} money ${accountId}: ${[`${formatUsd(free)} USD available`, ...more, `${formatUsd(charged)} charged so far`].join(', ')}`
}
