import type { Answer } from './answer.ts'
import { financialMetricsSnapshot } from './answers/financial-metrics-snapshot.ts'

/** Every answer that has a file of its own. */
export const ANSWERS: readonly Answer[] = [financialMetricsSnapshot]
