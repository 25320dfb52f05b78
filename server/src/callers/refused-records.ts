import { z } from 'zod'
import { money, moneyBody } from '../api/money.ts'
import type { RefusedCall } from '../gateway/read-refused-calls.ts'
import { FAULTS } from '../kernel/fault.ts'
import { ZERO } from '../kernel/money.ts'

/** Refused calls, as callers, members and agents read them among the others. */

export const refusal = z
  .strictObject({
    code: z.string(),
    status: z.int(),
    message: z.string().meta({ description: 'What such a refusal means, and what to do.' }),
    needed: moneyBody.nullable().meta({ description: 'What would have been held.' }),
    left: moneyBody.nullable().meta({ description: 'What there was for it; null where its caller was not told.' }),
    budget: z
      .strictObject({ kind: z.string(), subject: z.string().nullable(), period: z.string() })
      .nullable()
      .meta({ description: 'The tightest budget that was in the way.' }),
    limited_by: z.string().nullable().meta({ description: 'Whose the limit is: key, tier or endpoint.' }),
    fix: z
      .strictObject({
        output_limit: z.int().nullable().meta({ description: 'With this output limit it would have fitted.' }),
        retry_after_seconds: z.int().nullable(),
        url: z.string().nullable().meta({ description: 'The page where it is mended.' }),
      })
      .meta({ description: 'What would have let it through.' }),
  })
  .meta({ description: 'Of a refused call: why, and what would have let it through.' })

const TEXTS: ReadonlyMap<string, string> = new Map(Object.entries(FAULTS).map(([code, { text }]) => [code, text]))

/** As a row of a list of calls. */
export function inShortRefused(row: RefusedCall) {
  return {
    id: row.id,
    operation: row.operation,
    model: row.model,
    outcome: 'refused' as const,
    failed: false,
    cost: money(ZERO),
    begun_at: null,
    ended_at: row.at.toISOString(),
    end_user: null,
    tags: {},
    refusal: {
      code: row.code,
      status: row.status,
      message: TEXTS.get(row.code) ?? '',
      needed: row.needed === null ? null : money(row.needed),
      left: row.left === null ? null : money(row.left),
      budget: row.budget,
      limited_by: row.limitedBy,
      fix: { output_limit: row.fittingOutput, retry_after_seconds: row.retryAfterSeconds, url: row.fixUrl },
    },
  }
}
