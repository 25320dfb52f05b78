import type pg from 'pg'
import type { SandboxProcess } from '../../harness/sandbox.ts'
import { BOOKED_HOURS } from '../ledger/usage-rows.ts'

/** Everything that a call could leave behind, here and at the upstreams. */
export type Trace = Readonly<Record<string, unknown>>

type Parts = { readonly pool: pg.Pool; readonly sandbox: SandboxProcess }

export async function traceOf({ pool, sandbox }: Parts): Promise<Trace> {
  const { rows } = await pool.query<Trace>(`select
    (select count(*) from charges) as charges,
    (select count(*) from holds) as holds,
    (select count(*) from entries) as entries,
    (select count(*) from claims) as claims,
    (select count(*) from claims where kept_until is null) as open_claims,
    (select coalesce(sum(requests), 0)::bigint from ${BOOKED_HOURS} booked) as reported,
    (select coalesce(sum(charged), 0)::bigint from allowance_periods) as allowances_charged,
    (select coalesce(sum(held), 0)::bigint from allowance_periods) as allowances_held,
    (select coalesce(sum(charged), 0)::bigint from accounts) as charged,
    (select coalesce(sum(held), 0)::bigint from accounts) as held`)
  // Tasks are asked for again and again, whoever does what meanwhile.
  const asked = (await sandbox.journal()).filter((one) => one.upstream !== 'video' || one.method !== 'GET')
  return { ...rows[0], asked: asked.length }
}
