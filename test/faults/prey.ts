import { until } from '../../harness/until.ts'

/** How long a fault waits for something that it can hit, longer than a gateway sleeps. */
export const WAIT_FOR_PREY_MS = 20_000

/** Waits until there is something to hit, and says how much. */
export async function prey(count: () => number): Promise<number> {
  await until(() => count() > 0, WAIT_FOR_PREY_MS).catch(() => {})
  return count()
}
