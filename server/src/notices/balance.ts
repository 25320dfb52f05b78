import type pg from 'pg'
import { forgetRaisedBalances, listLowBalances, noticeBalanceOnce } from '../budgets/notices.ts'
import type { Id } from '../kernel/ids.ts'
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

type LowBalance = Awaited<ReturnType<typeof listLowBalances>>[number]

const PORTION = 500
const NAME_LIMIT = 200

/** Writes to owners and admins when the live balance of their workspace has fallen below an amount: once, until it was above that again. */
export function createBalanceNotices({ pool, sendMail, low, siteUrl }: Parts): () => Promise<void> {
  async function notice(account: LowBalance): Promise<void> {
    const balance = formatUsd(nanos(account.balance > 0n ? account.balance : 0n))
    await noticeBalanceOnce(pool, account, async (query, people) => {
      const workspace = account.workspace.slice(0, NAME_LIMIT)
      for (const to of people)
        await sendMail(query, { what: 'balance_low', to, workspace, balance, low: formatUsd(low), siteUrl })
    })
  }

  return async () => {
    if (low === ZERO) return
    await forgetRaisedBalances(pool, low)
    const failures: unknown[] = []
    let after: Id | null = null
    for (;;) {
      const found: readonly LowBalance[] = await listLowBalances(pool, low, after, PORTION)
      // What keeps some from being told keeps nobody else.
      for (const account of found) await notice(account).catch((error: unknown) => failures.push(error))
      after = found.at(-1)?.accountId ?? null
      if (found.length < PORTION) break
    }
    if (failures.length > 0)
      throw new Error(`of ${failures.length} low balances nobody could be told`, { cause: failures[0] })
  }
}
