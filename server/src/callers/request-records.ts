import type pg from 'pg'
import { z } from 'zod'
import { money, moneyBody } from '../api/money.ts'
import { ROUTE_REASONS } from '../gateway/plan.ts'
import {
  findRefusedCall,
  listRefusedCalls,
  positionOfRefused,
  type RefusedCall,
} from '../gateway/read-refused-calls.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { nanos, usd, ZERO } from '../kernel/money.ts'
import { listRequests, positionOf } from '../ledger/list-requests.ts'
import { findOpen, type OpenRequest } from '../ledger/open-requests.ts'
import { PLACES, type Posting, postingsOf } from '../ledger/postings.ts'
import { correctionsOf, type EndedRequest, findEnded, type LedgerLine, type WhoseRequests } from '../ledger/requests.ts'
import { termsOf } from './formula-terms.ts'
import { mergedPage } from './merged-lists.ts'
import { inShortRefused, refusal } from './refused-records.ts'
import { cursorOf, type ListFilter } from './request-filters.ts'

/** Records of calls, as callers, members and agents read them. */

const time = z.iso.datetime()
const endUser = z
  .strictObject({ id: z.string(), label: z.string().nullable() })
  .nullable()
  .meta({ description: 'For whom the call was made.' })
const tags = z.record(z.string(), z.string()).meta({ description: 'What the call was made for.' })
export const requestInShort = z.strictObject({
  id: z.string(),
  operation: z.string().nullable(),
  model: z.string().nullable(),
  outcome: z.enum(['posted', 'voided', 'refused']),
  failed: z.boolean(),
  cost: moneyBody,
  begun_at: time.nullable(),
  ended_at: time,
  end_user: endUser,
  tags,
  refusal: refusal.optional(),
})
/** One that was refused before it began. */
export const refusedRequest = requestInShort.extend({ outcome: z.literal('refused'), refusal })
const milliseconds = z.number().nullable()
const place = z.enum(PLACES)
const posting = z.strictObject({
  at: time,
  entry: z.string().meta({ description: 'hold, charge or release; or the kind of a correction.' }),
  debit: place.meta({ description: 'Where the amount left.' }),
  credit: place.meta({ description: 'Where it went.' }),
  amount: moneyBody,
})
const term = z.strictObject({ count: z.string(), unit: z.string(), price_usd: z.string(), cost_usd: z.string() })
export const requestInFull = requestInShort.omit({ refusal: true }).extend({
  outcome: z.enum(['posted', 'voided']),
  executed: z.boolean(),
  route: z.string().nullable().meta({ description: 'Whom the call went to, by the slot of the upstream.' }),
  held: moneyBody.meta({ description: 'The most that it could cost: set aside while it ran.' }),
  published_value: moneyBody,
  overrun: moneyBody.meta({ description: 'What it used beyond that: the loss of the operator, charged to nobody.' }),
  postings: z.array(posting).meta({ description: 'What it did to the balance, in the order of time.' }),
  terms: z.array(term).meta({
    description: 'The formula by its products, exact. Their sum is rounded once; empty where it has none.',
  }),
  tokens: z.strictObject({ input: z.int(), output: z.int(), cache_read: z.int(), cache_write: z.int() }),
  ledger: z.array(
    z.strictObject({
      id: z.string(),
      kind: z.string(),
      charged: moneyBody,
      promotional: moneyBody.optional(),
      at: time,
    }),
  ),
  detail: z
    .strictObject({
      status: z.number().nullable(),
      formula: z.string().nullable().meta({ description: 'How the price was worked out.' }),
      evidence: z.record(z.string(), z.unknown()),
      upstream: z.array(
        z.strictObject({
          slot: z.string(),
          outcome: z.string(),
          status: z.number().nullable(),
          reason: z.string().nullable(),
          began_ms: milliseconds,
          ended_ms: milliseconds,
        }),
      ),
      routing: z
        .strictObject({ slot: z.string(), upstream_model: z.string(), reason: z.enum(ROUTE_REASONS) })
        .nullable()
        .meta({ description: 'By which route of the model the call went, and why.' }),
      price_version: z.string().nullable().meta({
        description: 'The version of the price that it was charged by.',
      }),
      hold: z
        .array(z.strictObject({ at_ms: z.number(), amount: moneyBody }))
        .meta({ description: 'What was held for it when it began, and each time that this grew.' }),
      balance_after: moneyBody
        .nullable()
        .meta({ description: 'What the account had left when it had ended; null for a token that may not see it.' }),
      timeline: z.record(z.string(), z.number()),
      first_byte_ms: milliseconds,
    })
    .nullable()
    .meta({ description: 'How the call ran; null where that was not kept.' }),
})
export const openRequest = z.strictObject({
  id: z.string(),
  operation: z.string().nullable(),
  model: z.string().nullable(),
  outcome: z.enum(['running', 'unsettled']),
  held: moneyBody,
  begun_at: time,
  unsettled_at: time.nullable(),
  end_user: endUser,
  tags,
})
/** Who asks for one of somebody's calls. */
type RequestReader = { readonly whose: Exclude<WhoseRequests, 'everybody'>; readonly seesBalance: boolean }

/** One of somebody's calls, as it ended or as it stands. */
export async function requestOf(pool: pg.Pool, reader: RequestReader, id: Id) {
  const { body } = await requestWithCredential(pool, reader, id)
  return body
}

/** With the credential that it was made by; null of one that never held anything. */
export async function requestWithCredential(pool: pg.Pool, { whose, seesBalance }: RequestReader, id: Id) {
  // In this order: one that ends between the two is found by the second.
  const open = await findOpen(pool, whose, id)
  if (open !== undefined) return { credentialId: open.credential_id, body: ofOpen(open) }
  const ended = await findEnded(pool, whose, id)
  if (ended !== undefined)
    return { credentialId: ended.credential_id, body: inFull(ended, await correctionsOf(pool, id), seesBalance) }
  const refused = await findRefusedCall(pool, whose, id)
  if (refused === undefined) throw new Fault('resource_not_found')
  return { credentialId: refused.credentialId, body: inShortRefused(refused) }
}

/** A page of somebody's calls that have ended or were refused, as both APIs tell it. */
export async function pageOfRequests(pool: pg.Pool, filter: ListFilter) {
  const { listed, next_cursor } = await listedRequests(pool, filter)
  return { data: listed.map(({ body }) => body), next_cursor }
}

/** Each with the credential that it was made by. */
export async function listedRequests(pool: pg.Pool, { outcome, ...filter }: ListFilter) {
  const ended =
    outcome === 'refused' ? NONE : await listRequests(pool, { ...filter, ...(outcome !== undefined && { outcome }) })
  const isSought = mayBeRefused({ ...(outcome !== undefined && { outcome }), ...filter })
  const refused = isSought ? await listRefusedCalls(pool, filter) : NONE
  const { rows, next } = mergedPage(
    { rows: ended.rows.map((row) => ({ at: positionOf(row), shown: listedEnded(row) })), next: ended.next },
    {
      rows: refused.rows.map((row) => ({ at: positionOfRefused(row), shown: listedRefused(row) })),
      next: refused.next,
    },
    filter.limit,
  )
  return { listed: rows, next_cursor: next === null ? null : cursorOf(next) }
}

/** As a row of a list, with the credential that it was made by. */
type ListedRequest = { readonly credentialId: Id | null; readonly body: z.output<typeof requestInShort> }

const listedEnded = (row: EndedRequest): ListedRequest => ({ credentialId: row.credential_id, body: inShort(row) })
const listedRefused = (row: RefusedCall): ListedRequest => ({
  credentialId: row.credentialId,
  body: inShortRefused(row),
})

const NONE = { rows: [], next: null } as const

/** It is nobody's spend, and has cost nothing. */
function mayBeRefused({ outcome = 'refused', tag, endUserId, costAtLeast = ZERO }: Partial<ListFilter>): boolean {
  return outcome === 'refused' && tag === undefined && endUserId === undefined && costAtLeast === ZERO
}

export function inShort(row: EndedRequest) {
  return {
    id: row.id,
    operation: row.operation,
    // Of a call that ended before the ledger had it, how it went may say so.
    model: row.model ?? row.detail?.model ?? null,
    outcome: row.outcome,
    failed: row.failed,
    cost: money(nanos(row.amount - row.given_back)),
    begun_at: row.begun_at?.toISOString() ?? null,
    ended_at: row.ended_at.toISOString(),
    ...forWhom(row),
  }
}

function forWhom(row: Pick<EndedRequest, 'end_user' | 'end_user_label' | 'tags'>) {
  return {
    end_user: row.end_user === null ? null : { id: row.end_user, label: row.end_user_label },
    tags: Object.fromEntries((row.tags ?? []).map(partedTag)),
  }
}

function partedTag(tag: string): [name: string, value: string] {
  const at = tag.indexOf('=')
  return [tag.slice(0, at), tag.slice(at + 1)]
}

function inFull(row: EndedRequest, corrections: readonly LedgerLine[], seesBalance: boolean) {
  return {
    ...inShort(row),
    // What is free was executed too, and is counted nowhere.
    executed: row.executed || row.outcome === 'posted',
    route: row.route,
    held: money(row.held),
    published_value: money(row.value),
    overrun: money(row.overrun),
    postings: postingsOf(row, corrections).map(toldPosting),
    terms: [...termsOf(row.detail?.formula ?? null)],
    tokens: {
      input: Number(row.input_tokens),
      output: Number(row.output_tokens),
      cache_read: Number(row.cache_read_tokens),
      cache_write: Number(row.cache_write_tokens),
    },
    ledger: [
      {
        id: row.id,
        kind: row.outcome,
        charged: money(row.amount),
        promotional: money(row.promo),
        at: row.ended_at.toISOString(),
      },
      ...corrections
        .filter(({ charged }) => charged !== 0n)
        .map(({ id, kind, charged, entered_at }) => ({
          id,
          kind,
          charged: money(charged),
          at: entered_at.toISOString(),
        })),
    ],
    // The reason is one of ours: the gateway wrote it.
    detail: row.detail && (shownDetail(row.detail, seesBalance) as z.input<typeof requestInFull>['detail']),
  }
}

function toldPosting({ at, entry, debit, credit, amount }: Posting) {
  return { at: at.toISOString(), entry, debit, credit, amount: money(amount) }
}

/** Which of a slot's upstreams was asked is for operators alone. */
function shownDetail(kept: NonNullable<EndedRequest['detail']>, seesBalance: boolean) {
  const { model, upstream, hold, balance_after: after, ...detail } = kept
  return {
    ...detail,
    upstream: upstream.map(({ upstream_id, ...attempt }) => attempt),
    hold: hold.map(({ at_ms, usd: held }) => ({ at_ms, amount: money(usd(held)) })),
    balance_after: after === null || !seesBalance ? null : money(usd(after)),
  }
}

export function ofOpen(row: OpenRequest) {
  const { id, operation, asked_model: model, amount, begun_at, unsettled_at } = row
  return {
    id,
    operation,
    model,
    outcome: unsettled_at === null ? ('running' as const) : ('unsettled' as const),
    held: money(amount),
    begun_at: begun_at.toISOString(),
    unsettled_at: unsettled_at?.toISOString() ?? null,
    ...forWhom(row),
  }
}
