import type pg from 'pg'
import { listToNotice, type NoticeLevel, noticeOnce, type ToNotice } from '../grants/mandates.ts'
import { formatUsd, nanos } from '../kernel/money.ts'
import { type BudgetState, leftOf, readBudgets } from '../ledger/balance.ts'
import type { SendMail } from '../storage/mail.ts'
import { createRounds } from '../storage/rounds.ts'
import { MANDATES_PATH } from '../wording/fix-page.ts'

type Parts = {
  readonly pool: pg.Pool
  readonly sendMail: SendMail
  /** Where people reach the pages. */
  readonly siteUrl: string
}

const NAME_LIMIT = 200

/**
 * Writes to people whose mandates are used to four fifths, and once more at the end: when less than a hundredth is left, or when its time is over.
 * Each is told once for an amount that was set, however many workers look and whenever one dies. A look goes on where the one before it ended.
 */
export function createMandateNotices({ pool, sendMail, siteUrl }: Parts): () => Promise<void> {
  /** What kept some from being told. The others are told all the same. */
  async function look(found: readonly ToNotice[]): Promise<readonly unknown[]> {
    const failures: unknown[] = []
    const states = await readBudgets(
      pool,
      found.map(({ allowanceId }) => allowanceId),
    )
    for (const grant of found) {
      const state = states.get(grant.allowanceId)
      const level = state && levelOf(grant, state)
      if (state === undefined || level === undefined || level <= grant.noticed) continue
      const seen = { noticed: grant.noticed, amount: state.amount }
      await noticeOnce(pool, grant.id, level, seen, (query, { email: to, client, workspace, expires_at }) => {
        const names = { client: client.slice(0, NAME_LIMIT), workspace: workspace.slice(0, NAME_LIMIT) }
        const { amount, spent, held } = state
        return sendMail(query, {
          ...{ what: 'mandate_used', to, ...names, isOver: level === 100, hasExpired: grant.isOver },
          ...{ amount: formatUsd(amount), charged: formatUsd(nanos(spent - held)), held: formatUsd(held) },
          ...{ left: formatUsd(leftOf(state)), endsAt: expires_at?.toISOString() ?? null },
          mandateUrl: `${siteUrl}${MANDATES_PATH}/${grant.id}`,
        })
      }).catch((error: unknown) => failures.push(error))
    }
    return failures
  }

  const round = createRounds([(after, limit) => listToNotice(pool, after, limit)], look)

  return async () => {
    const failures = await round()
    if (failures.length > 0)
      throw new Error(`notices of mandates failed ${failures.length} times`, { cause: failures[0] })
  }
}

/** What there is to tell now; undefined for nothing. While it is paused the ledger has no amount to compare with. */
export function levelOf(
  { isOver, isPaused }: Pick<ToNotice, 'isOver' | 'isPaused'>,
  { amount, spent, held }: BudgetState,
): NoticeLevel | undefined {
  if (isOver) return 100
  if (isPaused || amount <= 0n) return undefined
  const charged = spent - held
  if (charged * 100n > amount * 99n) return 100
  return charged * 100n >= amount * 80n ? 80 : undefined
}
