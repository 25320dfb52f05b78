import type { Command } from 'commander'
import type pg from 'pg'
import { catalogue } from '../catalogue/catalogue.ts'
import { DEFAULT_HOLDING, HOLDINGS } from '../catalogue/holding.ts'
import type { KeyRates } from '../catalogue/key-rates.ts'
import { limitsWithin, tierLimitAbove } from '../catalogue/key-rates.ts'
import { DEFAULT_ON_DISCONNECT, ON_DISCONNECT } from '../catalogue/on-disconnect.ts'
import type { Tier, TierLimits } from '../catalogue/tiers.ts'
import type { Config } from '../config.ts'
import { type KeyTerms, networksIn, type TermsChange } from '../identity/key-terms.ts'
import type { ListedKey } from '../identity/listed-keys.ts'
import { tagsIn, tagText } from '../identity/tags.ts'
import { systemClock } from '../kernel/clock.ts'
import { requireKnownScopes } from '../pricing/check-scopes.ts'
import { budgetLine } from './budget-text.ts'
import { wholeNumber } from './command.ts'

/** How operators say, and are shown, how fast, for what and from where a key may be used. */

export type TermsOptions = {
  readonly rpm?: string
  readonly tpm?: string
  readonly concurrency?: string
  readonly scopes?: string
  readonly addresses?: string
  readonly onDisconnect?: string
  readonly holding?: string
  readonly tag?: string
}

export function withTerms(command: Command): Command {
  return command
    .option('--rpm <requests>', 'requests per minute, within the tier; none for the limit of the tier (new key: none)')
    .option('--tpm <tokens>', 'tokens per minute, within the tier; none for the limit of the tier (new key: none)')
    .option(
      '--concurrency <calls>',
      'concurrent calls, within the tier; none for the limit of the tier (new key: none)',
    )
    .option(
      '--scopes <list>',
      'allowed operations, categories and models, such as rerank,social,model:<name>, or all (new key: all)',
    )
    .option('--addresses <list>', 'allowed client addresses, such as 203.0.113.7,2001:db8::/32, or any (new key: any)')
    .option(
      '--on-disconnect <choice>',
      'what to do with a stream when its caller disconnects: finish, cancel, or default for the setting of the installation (new key: default)',
    )
    .option(
      '--holding <choice>',
      'hold of a stream: full (its maximum cost), growing (in steps), or default for the setting of the installation (new key: default)',
    )
    .option(
      '--tag <list>',
      'tags that every call of the key has, such as team=search,env=live, or none; they beat the tags of a request (new key: none)',
    )
}

/** What the options say; what they do not name is left out. */
export function termsOf({
  rpm,
  tpm,
  concurrency,
  scopes,
  addresses,
  onDisconnect,
  holding,
  tag,
}: TermsOptions): TermsChange {
  const rates: Partial<KeyRates> = {
    ...(rpm !== undefined && { requestsPerMinute: rateOf('--rpm', rpm) }),
    ...(tpm !== undefined && { tokensPerMinute: rateOf('--tpm', tpm) }),
    ...(concurrency !== undefined && { concurrency: rateOf('--concurrency', concurrency) }),
  }
  return {
    ...(Object.keys(rates).length > 0 && { rates }),
    ...(scopes !== undefined && { scopes: scopes === 'all' ? null : listOf(scopes, SCOPES_MISSING) }),
    ...(addresses !== undefined && {
      networks: addresses === 'any' ? null : networksIn(listOf(addresses, ADDRESSES_MISSING)),
    }),
    ...(onDisconnect !== undefined && { onDisconnect: choiceOf('--on-disconnect', onDisconnect, ON_DISCONNECT) }),
    ...(holding !== undefined && { holding: choiceOf('--holding', holding, HOLDINGS) }),
    ...(tag !== undefined && { tags: tag === 'none' ? null : tagsIn(listOf(tag, TAGS_MISSING)) }),
  }
}

function choiceOf<Choice extends string>(option: string, text: string, choices: readonly Choice[]): Choice | null {
  if (text === 'default') return null
  const choice = choices.find((one) => one === text)
  if (choice === undefined) throw new Error(`${option} must be ${choices.join(', ')} or default`)
  return choice
}

const SCOPES_MISSING = '--scopes must name operations, categories or models, such as rerank,social,model:<name>'
const TAGS_MISSING = '--tag must name tags, such as team=search,env=live'
const ADDRESSES_MISSING = '--addresses must name addresses or networks, such as 203.0.113.7,2001:db8::/32'

function rateOf(option: string, text: string): number | null {
  return text === 'none' ? null : wholeNumber(option, text)
}

function listOf(text: string, missing: string): readonly string[] {
  const items = text.split(',').map((item) => item.trim())
  if (items.includes('')) throw new Error(missing)
  return [...new Set(items)]
}

type Parts = { readonly pool: pg.Pool; readonly config: Config }

/** Throws where scopes name what is not there. */
export async function checkTerms({ pool, config }: Parts, { scopes }: TermsChange): Promise<void> {
  if (scopes === undefined || scopes === null) return
  const { operations } = catalogue
  await requireKnownScopes({ pool, operations, rerankModels: config.rerank.models }, scopes)
}

/** What a key has of its own, in a few words; nothing for one that has nothing. */
export function ownTerms({ rates, scopes, networks, onDisconnect, holding, tags }: KeyTerms): readonly string[] {
  const own = KINDS.flatMap(([kind, words]) => (rates[kind] === null ? [] : `${rates[kind]} ${words}`))
  return [
    ...(scopes === null ? [] : [`scopes ${scopes.join(', ')}`]),
    ...(own.length === 0 ? [] : [`limit ${own.join(', ')}`]),
    ...(networks === null ? [] : [`addresses ${networks.texts.join(', ')}`]),
    ...(onDisconnect === null ? [] : [`on disconnect ${onDisconnect}`]),
    ...(holding === null ? [] : [`holding ${holding}`]),
    ...(tags === null ? [] : [`tagged ${tags.map(tagText).join(', ')}`]),
  ]
}

const KINDS = [
  ['requestsPerMinute', 'requests per minute'],
  ['tokensPerMinute', 'tokens per minute'],
  ['concurrency', 'concurrent calls'],
] as const

/** All of a key, a line for each thing. */
export function linesOf(
  key: ListedKey & { readonly tier: Tier; readonly limits: TierLimits },
  spend: readonly string[],
): readonly string[] {
  const { scopes, networks, onDisconnect, holding, tags } = key.terms
  return [
    `Key ${key.id}, ${key.mode}, ${key.name}`,
    `Account ${key.workspaceId}, tier ${key.tier}`,
    `State: ${stateOf(key)}`,
    ...oldSecretLines(key),
    `Budget: ${key.budget === null ? 'none' : budgetLine(key.budget)}`,
    ...spend,
    ...limitLines(key.limits, key.terms.rates),
    `Scopes: ${scopes?.join(', ') ?? 'all'}`,
    `Addresses: ${networks?.texts.join(', ') ?? 'any'}`,
    `On disconnect: ${onDisconnect ?? `${DEFAULT_ON_DISCONNECT} (default)`}`,
    `Holding: ${holding ?? `${DEFAULT_HOLDING} (default)`}`,
    `Tags: ${tags?.map(tagText).join(', ') ?? 'none'}`,
    `Member: ${key.memberId ?? 'nobody'}`,
  ]
}

/** What holds, and whose it is. */
function limitLines(tier: TierLimits, rates: KeyRates): readonly string[] {
  const limits = limitsWithin(tier, rates)
  return KINDS.map(([kind, words]) => {
    const above = tierLimitAbove(limits, kind)
    const own = rates[kind] === null ? '' : `; the key's own limit is ${rates[kind]}`
    return `${words[0]?.toUpperCase()}${words.slice(1)}: ${limits[kind]} ${above === undefined ? `(limit of the tier${own})` : `(limit of the key; the tier allows ${above})`}`
  })
}

/** A secret that was rotated away is worth a line while it works. */
function oldSecretLines({
  revokedAt,
  previousUntil,
}: Pick<ListedKey, 'revokedAt' | 'previousUntil'>): readonly string[] {
  if (revokedAt !== null || previousUntil === null || previousUntil.getTime() <= systemClock.nowMs()) return []
  return [`Old secret: works until ${previousUntil.toISOString()}`]
}

export function stateOf({ revokedAt, expiresAt }: Pick<ListedKey, 'revokedAt' | 'expiresAt'>): string {
  if (revokedAt !== null) return `revoked ${revokedAt.toISOString()}`
  if (expiresAt === null) return 'active'
  return `${expiresAt.getTime() > systemClock.nowMs() ? 'active until' : 'expired'} ${expiresAt.toISOString()}`
}
