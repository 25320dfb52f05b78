import { z } from 'zod'
import { tagsIn, tagText } from '../budgets/tags.ts'
import { catalogue } from '../catalogue/catalogue.ts'
import { HOLDINGS } from '../catalogue/holding.ts'
import type { KeyRates } from '../catalogue/key-rates.ts'
import { ON_DISCONNECT } from '../catalogue/on-disconnect.ts'
import { type KeyTerms, networksIn, type TermsChange } from '../identity/key-terms.ts'
import type { ListedKey } from '../identity/listed-keys.ts'
import { systemClock } from '../kernel/clock.ts'
import { requireKnownScopes } from '../pricing/check-scopes.ts'
import { field, type OperatorParts } from './action.ts'
import { wholeNumber } from './fields.ts'

/** How operators say, and are shown, how fast, for what and from where a key may be used. */

export const termFields = {
  rpm: rate('requests', 'requests per minute'),
  tpm: rate('tokens', 'tokens per minute'),
  concurrency: rate('calls', 'concurrent calls'),
  scopes: field(
    'list',
    'allowed operations, categories and models, such as rerank,social,model:<name>, or all (new key: all)',
    (text) =>
      text === 'all'
        ? null
        : listIn(text, 'must name operations, categories or models, such as rerank,social,model:<name>'),
  ).optional(),
  addresses: field(
    'list',
    'allowed client addresses, such as 203.0.113.7,2001:db8::/32, or any (new key: any)',
    (text) =>
      text === 'any'
        ? null
        : networksIn(listIn(text, 'must name addresses or networks, such as 203.0.113.7,2001:db8::/32')),
  ).optional(),
  onDisconnect: choice(
    ON_DISCONNECT,
    'what to do with a stream when its caller disconnects: finish, cancel, or default for the setting of the installation (new key: default)',
  ),
  holding: choice(
    HOLDINGS,
    'hold of a stream: full (its maximum cost), growing (in steps), or default for the setting of the installation (new key: default)',
  ),
  tag: field(
    'list',
    'tags that every call of the key has, such as team=search,env=live, or none; they beat the tags of a request (new key: none)',
    (text) => (text === 'none' ? null : tagsIn(listIn(text, 'must name tags, such as team=search,env=live'))),
  ).optional(),
}

function rate(shown: string, what: string) {
  return field(shown, `${what}, within the tier; none for the limit of the tier (new key: none)`, (text) =>
    text === 'none' ? null : wholeNumber(text),
  ).optional()
}

function choice<Choice extends string>(choices: readonly Choice[], description: string) {
  return field('choice', description, (text) => {
    if (text === 'default') return null
    const found = choices.find((one) => one === text)
    if (found === undefined) throw new Error(`must be ${choices.join(', ')} or default`)
    return found
  }).optional()
}

function listIn(text: string, missing: string): readonly string[] {
  const items = text.split(',').map((item) => item.trim())
  if (items.includes('')) throw new Error(missing)
  return [...new Set(items)]
}

const given = z.object(termFields)

/** What the options say; what they do not name is left out. */
export function termsOf(options: z.output<typeof given>): TermsChange {
  const { rpm, tpm, concurrency, scopes, addresses, onDisconnect, holding, tag } = options
  const rates: Partial<KeyRates> = {
    ...(rpm !== undefined && { requestsPerMinute: rpm }),
    ...(tpm !== undefined && { tokensPerMinute: tpm }),
    ...(concurrency !== undefined && { concurrency }),
  }
  return {
    ...(Object.keys(rates).length > 0 && { rates }),
    ...(scopes !== undefined && { scopes }),
    ...(addresses !== undefined && { networks: addresses }),
    ...(onDisconnect !== undefined && { onDisconnect }),
    ...(holding !== undefined && { holding }),
    ...(tag !== undefined && { tags: tag }),
  }
}

/** Throws where scopes name what is not there. */
export async function checkTerms({ pool, settings }: OperatorParts, { scopes }: TermsChange): Promise<void> {
  if (scopes === undefined || scopes === null) return
  const { operations } = catalogue
  await requireKnownScopes({ pool, operations, rerankModels: settings.rerankModels }, scopes)
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

export const KINDS = [
  ['requestsPerMinute', 'requests per minute'],
  ['tokensPerMinute', 'tokens per minute'],
  ['concurrency', 'concurrent calls'],
] as const

export function stateOf({ revokedAt, expiresAt }: Pick<ListedKey, 'revokedAt' | 'expiresAt'>): string {
  if (revokedAt !== null) return `revoked ${revokedAt.toISOString()}`
  if (expiresAt === null) return 'active'
  return `${expiresAt.getTime() > systemClock.nowMs() ? 'active until' : 'expired'} ${expiresAt.toISOString()}`
}
