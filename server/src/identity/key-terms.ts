import { z } from 'zod'
import { type Tag, tagsIn, tagText } from '../budgets/tags.ts'
import { HOLDINGS, type Holding } from '../catalogue/holding.ts'
import type { KeyRates } from '../catalogue/key-rates.ts'
import { ON_DISCONNECT, type OnDisconnect } from '../catalogue/on-disconnect.ts'
import { createNetworks, type Networks } from '../kernel/networks.ts'
import type { Facts } from '../storage/audit.ts'

/** What a key may do beside spending: how fast, what, and from where. */
export type KeyTerms = {
  readonly rates: KeyRates
  /** Null for everything. */
  readonly scopes: readonly string[] | null
  /** Null for anywhere. */
  readonly networks: Networks | null
  /** What becomes of its streams when a caller leaves; null for what the installation does. */
  readonly onDisconnect: OnDisconnect | null
  /** What is held for its streams; as the installation does where it is null. */
  readonly holding: Holding | null
  /** What its calls are tagged with, whatever a request says; null for nothing. */
  readonly tags: readonly Tag[] | null
}

/** What of it is to be another; what is left out stays as it is. */
export type TermsChange = Partial<Omit<KeyTerms, 'rates'>> & { readonly rates?: Partial<KeyRates> }

export const NO_TERMS: KeyTerms = {
  rates: { requestsPerMinute: null, tokensPerMinute: null, concurrency: null },
  scopes: null,
  networks: null,
  onDisconnect: null,
  holding: null,
  tags: null,
}

export function changed(before: KeyTerms, change: TermsChange): KeyTerms {
  const { rates, scopes, networks, onDisconnect, holding, tags } = change
  return {
    rates: { ...before.rates, ...rates },
    scopes: scopes === undefined ? before.scopes : scopes,
    networks: networks === undefined ? before.networks : networks,
    onDisconnect: onDisconnect === undefined ? before.onDisconnect : onDisconnect,
    holding: holding === undefined ? before.holding : holding,
    tags: tags === undefined ? before.tags : tags,
  }
}

/** In the order in which statements are given them. */
export const TERMS_COLUMNS =
  'requests_per_minute, tokens_per_minute, concurrency, scopes, allowed_networks, on_disconnect, holding, fixed_tags'

/** Of a key that a statement calls k. */
export const TERMS_SELECT = `k.requests_per_minute, k.tokens_per_minute, k.concurrency, k.scopes,
  k.allowed_networks::text[] as allowed_networks, k.on_disconnect, k.holding, k.fixed_tags`

const row = z.object({
  requests_per_minute: z.int().nullable(),
  tokens_per_minute: z.bigint().transform(Number).nullable(),
  concurrency: z.int().nullable(),
  scopes: z.array(z.string()).nullable(),
  allowed_networks: z.array(z.string()).nullable(),
  on_disconnect: z.enum(ON_DISCONNECT).nullable(),
  holding: z.enum(HOLDINGS).nullable(),
  fixed_tags: z.array(z.string()).nullable(),
})

export const TERMS_ROW = row.shape

/** What a row says of them. One whose networks can't be read lets nobody in: this throws. */
export function termsIn(columns: z.output<typeof row>): KeyTerms {
  const { requests_per_minute, tokens_per_minute, concurrency, scopes, allowed_networks } = columns
  return {
    rates: { requestsPerMinute: requests_per_minute, tokensPerMinute: tokens_per_minute, concurrency },
    scopes,
    networks: allowed_networks && createNetworks(allowed_networks),
    onDisconnect: columns.on_disconnect,
    holding: columns.holding,
    tags: columns.fixed_tags && tagsIn(columns.fixed_tags),
  }
}

/** Where a statement is given them, from one parameter on. */
export function termsPlaces(first: number): string {
  return termsValues(NO_TERMS)
    .map((_, at) => `$${first + at}`)
    .join(', ')
}

/** As parameters of a statement, in the order of the columns. */
export function termsValues({ rates, scopes, networks, onDisconnect, holding, tags }: KeyTerms): readonly unknown[] {
  const { requestsPerMinute, tokensPerMinute, concurrency } = rates
  return [
    ...[requestsPerMinute, tokensPerMinute, concurrency, scopes, networks?.texts ?? null, onDisconnect, holding],
    tags?.map(tagText) ?? null,
  ]
}

/** For the audit log. */
export function termsFacts({ rates, scopes, networks, onDisconnect, holding, tags }: KeyTerms): Facts {
  const choices = {
    ...(onDisconnect !== null && { onDisconnect }),
    ...(holding !== null && { holding }),
    ...(tags !== null && { tags: tags.map(tagText) }),
  }
  return { ...rates, scopes, networks: networks?.texts ?? null, ...choices }
}

const MOST_NETWORKS = 50

/** Reads what somebody wants a key to allow. Throws where a text is no network, or where they are too many. */
export function networksIn(texts: readonly string[]): Networks {
  if (texts.length === 0) throw new RangeError('a key needs at least one address: name one, or revoke the key')
  if (texts.length > MOST_NETWORKS)
    throw new RangeError(`a key can have at most ${MOST_NETWORKS} networks, and you named ${texts.length}`)
  return createNetworks(texts)
}
