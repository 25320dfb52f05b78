import type pg from 'pg'
import { forgetRaisedBalances, listLowBalances, noticeBalanceOnce } from '../identity/budget-notices.ts'
import { formatUsd, type Nanos, nanos, ZERO } from '../kernel/money.ts'
import type { SendMail } from '../storage/mail.ts'

type Parts = {
  readonly pool: pg.Pool
  readonly sendMail: SendMail
  /** Nothing where nobody is to be told. */
  readonly low: Nanos
  /** Where people reach the pages. */
  readonly siteUrl: string
}

const PORTION = 500
const NAME_LIMIT = 200

/** Writes to owners and admins when the live balance of their workspace has fallen below an amount: once, until it was above that again. */
export function createBalanceNotices({ pool, sendMail, low, siteUrl }: Parts): () => Promise<void> {
  return async () => {
    if (low === ZERO) return
    await forgetRaisedBalances(pool, low)
    for (;;) {
      const found = await listLowBalances(pool, low, PORTION)
      for (const account of found) {
        const balance = formatUsd(nanos(account.balance > 0n ? account.balance : 0n))
        await noticeBalanceOnce(pool, account, async (query, people) => {
          const workspace = account.workspace.slice(0, NAME_LIMIT)
          for (const to of people)
            await sendMail(query, { what: 'balance_low', to, workspace, balance, low: formatUsd(low), siteUrl })
        })
      }
      if (found.length < PORTION) return
    }
  }
}
