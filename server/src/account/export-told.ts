import { money } from '../api/money.ts'
import type { ListedGrant } from '../grants/grants.ts'
import type { Mode } from '../kernel/mode.ts'
import { formatUsd } from '../kernel/money.ts'
import type { Charge, Entry } from '../ledger/pages-of-account.ts'
import type { SeenTask } from '../tasks/tasks.ts'
import type { Line } from './export-portions.ts'

/** What an export tells of things that no other route tells in the same way. */

export function toldEntryOfLedger(row: Entry, mode: Mode): Line {
  const { id, kind, credited, charged, promo, debt, corrects, entered_at: at } = row
  return {
    ...{ type: 'entry', mode, id, kind, at: at.toISOString(), corrects },
    ...{ credited: money(credited), charged: money(charged), promotional: money(promo), debt: money(debt) },
  }
}

export function toldCharge(row: Charge, mode: Mode): Line {
  return {
    ...{ type: 'charge', mode, id: row.id, credential_id: row.credential_id, operation: row.operation },
    ...{ model: row.model, route: row.route, outcome: row.outcome, failed: row.failed },
    ...{ amount: money(row.amount), promotional: money(row.promo), value: money(row.value) },
    ...{ input_tokens: Number(row.input_tokens), output_tokens: Number(row.output_tokens) },
    ...{ cache_read_tokens: Number(row.cache_read_tokens), cache_write_tokens: Number(row.cache_write_tokens) },
    ...{ end_user_id: row.end_user, end_user: row.end_user_label, tags: row.tags ?? [] },
    ...{ begun_at: row.begun_at?.toISOString() ?? null, ended_at: row.ended_at.toISOString() },
  }
}

export function toldGrant(grant: ListedGrant): Line {
  const { budget, terms, asks } = grant
  return {
    ...{ type: 'grant', mode: grant.mode, id: grant.id, person_id: grant.personId },
    ...{ client_id: grant.clientId, client_name: grant.clientName },
    ...{ audiences: grant.audiences, oauth_scopes: grant.oauthScopes, scopes: terms.scopes },
    is_active: grant.isActive,
    is_paused: grant.isPaused,
    budget: budget && { period: budget.period, amount: money(budget.amount) },
    call_limit: asks.callLimit === null ? null : money(asks.callLimit),
    asks_high_cost: asks.asksHighCost,
    requests_per_minute: terms.rates.requestsPerMinute,
    allowed_addresses: terms.networks && [...terms.networks.texts],
    created_at: grant.createdAt.toISOString(),
    expires_at: grant.expiresAt?.toISOString() ?? null,
    revoked_at: grant.revokedAt?.toISOString() ?? null,
  }
}

/** How it stands, and what it cost. What was asked and what came of it are sealed, and not told. */
export function toldTask({ resource: { output }, cost }: SeenTask, mode: Mode): Line {
  const { submit_time: submitted, end_time: ended } = Object(output)
  return {
    ...{ type: 'task', mode, id: output.task_id, status: output.task_status },
    ...{
      submit_time: submitted ?? null,
      end_time: ended ?? null,
      cost_usd: cost === undefined ? null : formatUsd(cost),
    },
  }
}
