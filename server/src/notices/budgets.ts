import type pg from 'pg'
import {
  type BudgetNoticeLevel,
  type BudgetToNotice,
  listBudgetsToNotice,
  NOTICE_LEVELS,
  NOTICE_SOURCES,
  noticeBudgetOnce,
} from '../budgets/notices.ts'
import { formatUsd, nanos } from '../kernel/money.ts'
import { leftOf, type PeriodState, readPeriods } from '../ledger/balance.ts'
import type { SendMail } from '../storage/mail.ts'
import { createRounds } from '../storage/rounds.ts'
import { ceilingName, resetOf } from '../wording/money-words.ts'

type Parts = {
  readonly pool: pg.Pool
  readonly sendMail: SendMail
  /** Where people reach the pages. */
  readonly siteUrl: string
}

const NAME_LIMIT = 200

/**
 * Writes to owners and admins when a budget is used to a half, to four fifths and to its end: once a level and period, however many workers
 * look and whenever one dies. Several levels that are passed at once are one letter. A look goes on where the one before it ended.
 */
export function createBudgetNotices({ pool, sendMail, siteUrl }: Parts): () => Promise<void> {
  async function notice(budget: BudgetToNotice, state: PeriodState, level: BudgetNoticeLevel): Promise<void> {
    const { period, startsAt, amount, spent, held } = state
    const letter = {
      ...({ what: 'budget_used', workspace: budget.workspace.slice(0, NAME_LIMIT), isTest: budget.isTest } as const),
      ...{ budget: nameOf(budget).slice(0, NAME_LIMIT), percent: level, period, amount: formatUsd(amount) },
      ...{ charged: formatUsd(nanos(spent - held)), held: formatUsd(held), left: formatUsd(leftOf(state)) },
      ...{ resetsAt: resetOf(period, startsAt.getTime()), siteUrl },
    }
    await noticeBudgetOnce(pool, budget, { startsAt, level, amount }, async (query, people) => {
      for (const to of people) await sendMail(query, { ...letter, to })
    })
  }

  /** What kept some from being told. The others are told all the same. */
  async function look(found: readonly BudgetToNotice[]): Promise<readonly unknown[]> {
    const failures: unknown[] = []
    const states = await readPeriods(
      pool,
      found.map(({ allowanceId }) => allowanceId),
    )
    for (const budget of found) {
      for (const state of states.get(budget.allowanceId) ?? []) {
        const level = levelToTell(budget, state)
        if (level !== undefined) await notice(budget, state, level).catch((error: unknown) => failures.push(error))
      }
    }
    return failures
  }

  const round = createRounds(
    NOTICE_SOURCES.map((source) => (after, limit) => listBudgetsToNotice(pool, source, after, limit)),
    look,
  )

  return async () => {
    const failures = await round()
    if (failures.length > 0)
      throw new Error(`notices of budgets failed ${failures.length} times`, { cause: failures[0] })
  }
}

function nameOf({ kind, subject }: BudgetToNotice): string {
  return kind === 'key' ? `key ${subject}` : ceilingName({ kind, subject })
}

/** What there is to tell of a period and was not told; undefined for nothing. Less than a hundredth that is left is the end. */
export function levelToTell(
  { noticedFrom, noticed }: Pick<BudgetToNotice, 'noticedFrom' | 'noticed'>,
  { startsAt, amount, spent, held }: Pick<PeriodState, 'startsAt' | 'amount' | 'spent' | 'held'>,
): BudgetNoticeLevel | undefined {
  if (amount <= 0n) return undefined
  const charged = spent - held
  const isPast = (level: BudgetNoticeLevel) =>
    level === 100 ? charged * 100n > amount * 99n : charged * 100n >= amount * BigInt(level)
  const level = NOTICE_LEVELS.filter(isPast).at(-1)
  // Who was told of a later period is told of none before it.
  if (noticedFrom !== null && noticedFrom > startsAt) return undefined
  const told = noticedFrom?.getTime() === startsAt.getTime() ? noticed : 0
  return level !== undefined && level > told ? level : undefined
}
