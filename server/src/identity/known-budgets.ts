import pg from 'pg'
import { Fault } from '../kernel/fault.ts'
import type { Query } from '../storage/transaction.ts'
import type { Budget } from './budgets.ts'

/** SQLSTATE of require_budgets_known. */
const OLD_PROCESS = 'FB001'

/**
 * A process that does not know of such budgets would not hold calls against them. Asked before anything else is locked, because processes
 * wait for this lock before they start.
 */
export async function requireKnown(query: Query): Promise<void> {
  try {
    await query('select require_budgets_known()')
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== OLD_PROCESS) throw error
    const detail =
      'A process of the release before is still running, and it would not hold calls against this budget. Finish the upgrade, then set it. Nothing was changed.'
    throw new Fault('invalid_request', { detail, cause: error })
  }
}

/** Of the budgets of keys, the release before knows those of other periods. */
export async function requireKnownPeriod(query: Query, budget: Budget | null | undefined): Promise<void> {
  if (budget?.period === 'week') await requireKnown(query)
}
