import type { Member } from '../../catalogue/member-table.ts'
import { neutral, refused } from '../../catalogue/member-table.ts'
import { refusal } from './members.ts'
import { OTHER_MODEL, RUN_UPSTREAM } from './reasons.ts'

/** What callers may ask for in the headers of the protocols, by its name without its date. */
export type Betas = { readonly header: string; readonly known: Readonly<Record<string, Member>> }

const ELSEWHERE = 'it is about endpoints that are not served here.'
const PRICE_OF_ITS_OWN = 'it has a price of its own.'
const SUMMARY = 'what a summary generates is charged beyond the output limit.'

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
    'mid-conversation-tool-changes': neutral(),
    'mid-conversation-output-config': neutral(),
    'mid-conversation-system-clear-at': neutral(),
    'inline-tools': neutral(),
    'context-1m': refused(PRICE_OF_ITS_OWN),
    'fast-mode': refused(PRICE_OF_ITS_OWN),
    'fallback-credit': refused(OTHER_MODEL),
    'server-side-fallback': refused(OTHER_MODEL),
    'advisor-tool': refused(OTHER_MODEL),
    compact: refused(SUMMARY),
    'message-threads': refused('what an upstream has stored of a conversation is not in the bound of the input.'),
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
    agents: neutral(),
  },
}

const NAME_LENGTH = 64
const UNKNOWN_MOST = 8

/** The betas of a header that we do not know. One that costs something is refused by its name. */
export function unknownBetas(headers: Readonly<Record<string, string>>, { header, known }: Betas): readonly string[] {
  const value = headers[header]
  if (value === undefined) return []
  const unknown: string[] = []
  for (const text of value.split(',')) {
    const name = text.trim().toLowerCase()
    if (name === '') continue
    const family = familyOf(name)
    const standing = Object.hasOwn(known, family) ? known[family] : undefined
    const shown = name.slice(0, NAME_LENGTH)
    if (standing?.is === 'refused') throw refusal(`The header ${header} may not have "${shown}": ${standing.why}`)
    if (standing === undefined && unknown.length < UNKNOWN_MOST) unknown.push(`${header}: ${shown}`)
  }
  return unknown
}

/** `context-1m-2025-08-07` is `context-1m`, and `assistants=v2` is `assistants`. */
export function familyOf(beta: string): string {
  return beta.replace(/-\d{4}-?\d{2}-?\d{2}$/, '').replace(/=v\d+$/, '')
}
