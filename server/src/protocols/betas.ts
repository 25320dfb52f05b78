import { foldName } from '../catalogue/fold-name.ts'
import { type Member, NAME_LENGTH, needing, neutral, refused, UNKNOWN_MOST } from '../catalogue/member-table.ts'
import { refusal } from './members.ts'
import type { Sold } from './protocol.ts'
import { OTHER_MODEL, RUN_UPSTREAM, SUMMARY } from './reasons.ts'

/** What callers may ask for in the headers of the protocols, by its name without its date. */
export type Betas = { readonly header: string; readonly known: Readonly<Record<string, Member>> }

const ELSEWHERE = 'it is for endpoints that are not served here.'
const PRICE_OF_ITS_OWN = 'it has a price of its own.'

export const ANTHROPIC_BETAS: Betas = {
  header: 'anthropic-beta',
  known: {
    // Those of Claude Code that no library lists.
    'claude-code': neutral(),
    oauth: neutral(),
    effort: neutral(),
    'adaptive-thinking': neutral(),
    'redact-thinking': neutral(),
    'fine-grained-tool-streaming': neutral(),
    'prompt-caching-scope': neutral(),
    'advanced-tool-use': neutral(),
    'tool-search-tool': neutral(),
    'tool-examples': neutral(),
    // What these allow is read where it stands in the body.
    'prompt-caching': neutral(),
    'extended-cache-ttl': neutral(),
    'computer-use': neutral(),
    'code-execution': neutral(),
    'mcp-client': neutral(),
    skills: neutral(),
    'files-api': neutral(),
    pdfs: neutral(),
    'token-counting': neutral(),
    'token-efficient-tools': neutral(),
    'output-128k': neutral(),
    'output-300k': neutral(),
    'dev-full-thinking': neutral(),
    'interleaved-thinking': neutral(),
    'thinking-token-count': neutral(),
    'thinking-display-updates': neutral(),
    'thinking-binding-controls': neutral(),
    'context-management': neutral(),
    'model-context-window-exceeded': neutral(),
    'cache-diagnosis': neutral(),
    'structured-outputs': neutral(),
    'task-budgets': neutral(),
    'mid-conversation-system': neutral(),
    'mid-conversation-tool-changes': neutral(),
    'mid-conversation-output-config': neutral(),
    'mid-conversation-system-clear-at': neutral(),
    'per-turn-control': neutral(),
    'inline-tools': neutral(),
    'context-1m': needing('long_context', PRICE_OF_ITS_OWN),
    'fast-mode': refused(PRICE_OF_ITS_OWN),
    'fallback-credit': refused(OTHER_MODEL),
    'server-side-fallback': refused(OTHER_MODEL),
    'advisor-tool': refused(OTHER_MODEL),
    compact: refused(SUMMARY),
    'message-threads': refused('a conversation that the provider stores cannot be priced in advance.'),
    'managed-agents': refused(RUN_UPSTREAM),
    'message-batches': refused(ELSEWHERE),
    'user-profiles': refused(ELSEWHERE),
    dreaming: refused(ELSEWHERE),
    'agent-memory': refused(ELSEWHERE),
    'mcp-tunnels': refused(ELSEWHERE),
    'ce-user-management': refused(ELSEWHERE),
    'ce-plugins': refused(ELSEWHERE),
    'spend-limit-reads': refused(ELSEWHERE),
    'telemetry-destinations': refused(ELSEWHERE),
    webhooks: refused(ELSEWHERE),
    'admin-user-sign-out': refused(ELSEWHERE),
    'analytics-usage-cost': refused(ELSEWHERE),
    'experimental-claude-tag': refused(ELSEWHERE),
  },
}

/** Each names an endpoint and its version. Libraries send them with requests to others, where they say nothing. */
export const OPENAI_BETAS: Betas = {
  header: 'openai-beta',
  known: {
    assistants: neutral(),
    chatkit_beta: neutral(),
    realtime: neutral(),
    responses: neutral(),
    // As coding agents still write it.
    'responses=experimental': neutral(),
    agents: neutral(),
  },
}

/** Servers differ in what parts the items of a header. */
const SEPARATOR = /[,;\s]+/

/** The betas of a header that we do not know. One that costs something is refused by its name, in any spelling. */
export function unknownBetas(
  headers: Readonly<Record<string, string>>,
  { header, known }: Betas,
  sold?: Sold,
): readonly string[] {
  const value = headers[header]
  if (value === undefined) return []
  const unknown: string[] = []
  for (const text of value.split(SEPARATOR)) {
    const name = text.toLowerCase()
    if (name === '') continue
    const shown = name.slice(0, NAME_LENGTH)
    const family = familyOf(name)
    const standing = Object.hasOwn(known, family) ? known[family] : lookalikeOf(name, known)
    const isUnpriced = standing?.is === 'needing' && sold?.needs.has(standing.need) !== true
    if (standing?.is === 'refused' || isUnpriced)
      throw refusal(`The header ${header} must not have "${shown}": ${standing.why}`)
    if (standing === undefined && unknown.length < UNKNOWN_MOST) unknown.push(`${header}: ${shown}`)
  }
  return unknown
}

/** A beta that costs something and may be meant by this spelling. */
function lookalikeOf(name: string, known: Betas['known']): Member | undefined {
  const folded = foldName(name).replace(/\d{8}$/, '')
  return Object.entries(known).find(
    ([one, { is }]) => (is === 'refused' || is === 'needing') && foldName(one) === folded,
  )?.[1]
}

/** `context-1m-2025-08-07` is `context-1m`, and `assistants=v2` is `assistants`. */
export function familyOf(beta: string): string {
  return beta.replace(/-\d{4}-?\d{2}-?\d{2}$/, '').replace(/=v\d+$/, '')
}
