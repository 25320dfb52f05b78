/** Over which time a budget counts. Periods begin by PostgreSQL's rule, `period_start`: in UTC, a week on Monday; a total never begins again. */
export const PERIODS = ['day', 'week', 'month', 'total'] as const
export type Period = (typeof PERIODS)[number]

const DAY_MS = 86_400_000

/** When the period after the one that is running begins, in Unix milliseconds; null where there is none. */
export function nextPeriodMs(period: Period, nowMs: number): number | null {
  const now = new Date(nowMs)
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()]
  const today = Date.UTC(year, month, day)
  switch (period) {
    case 'day':
      return today + DAY_MS
    case 'week':
      return today + (7 - ((now.getUTCDay() + 6) % 7)) * DAY_MS
    case 'month':
      return Date.UTC(year, month + 1, 1)
    case 'total':
      return null
  }
}

/** When the period that is running began, in Unix milliseconds. */
export function periodStartMs(period: Period, nowMs: number): number {
  const now = new Date(nowMs)
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()]
  switch (period) {
    case 'day':
      return Date.UTC(year, month, day)
    case 'week':
      return Date.UTC(year, month, day) - ((now.getUTCDay() + 6) % 7) * DAY_MS
    case 'month':
      return Date.UTC(year, month, 1)
    case 'total':
      return Date.UTC(2000, 0, 1)
  }
}
