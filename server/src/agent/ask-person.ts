import { randomUUID } from 'node:crypto'
import { isMembers } from '../catalogue/member-table.ts'
import { readApproval } from '../grants/approvals.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import { type Fault, invalidRequest } from '../kernel/fault.ts'
import { type Id, isId } from '../kernel/ids.ts'
import type { AgentParts } from './parts.ts'
import type { InputRequired } from './tool-result.ts'
import type { Used } from './use.ts'

/**
 * A call that needs its person's approval is asked for by the address of a page of ours, where the client can lead a person there. What
 * the client itself answers decides nothing: only the page does, for who is signed in there.
 */
export type Asking = {
  /** What the client brings back of an earlier answer of ours; undefined where it asks for the first time. */
  readonly state: unknown
  /** What the client says that its person did, by the name of what they were asked for. */
  readonly responses: unknown
}

/** As our only question is called. */
const QUESTION = 'approval'
/** Who has just opened the page needs a moment to read it. */
const WAIT_MS = 25_000
const LOOK_EVERY_MS = 500
/** Requests of this process that wait for a person at the same time, of all callers and of one. */
const WAITING_MOST = 100
const WAITING_OF_ONE = 5

type Parts = Pick<AgentParts, 'pool' | 'clock'>

export function createAskPerson({ pool, clock }: Parts) {
  const waiting = new Map<Id, number>()
  let waitingInAll = 0

  /** Whether the person has decided, in a while that a client waits for an answer. */
  async function isDecided(request: AgentRequest, approvalId: string): Promise<boolean> {
    const { credentialId } = request.caller
    const own = waiting.get(credentialId) ?? 0
    if (waitingInAll >= WAITING_MOST || own >= WAITING_OF_ONE) return false
    waitingInAll += 1
    waiting.set(credentialId, own + 1)
    try {
      const untilMs = clock.monotonicMs() + WAIT_MS
      while (clock.monotonicMs() < untilMs && !request.hasLeft() && !request.isDraining()) {
        const approval = await readApproval(pool, approvalId)
        if (approval?.state !== 'waiting') return approval !== undefined
        await clock.sleep(LOOK_EVERY_MS)
      }
      return false
    } finally {
      waitingInAll -= 1
      const others = (waiting.get(credentialId) ?? 1) - 1
      if (others === 0) waiting.delete(credentialId)
      else waiting.set(credentialId, others)
    }
  }

  return async (
    request: AgentRequest,
    { state, responses }: Asking,
    used: Used,
    again: () => Promise<Used>,
  ): Promise<Used | InputRequired> => {
    const { fault } = used
    const { approval_id: id, approval_url: url } = fault?.members ?? {}
    if (fault?.code !== 'approval_required' || typeof id !== 'string' || typeof url !== 'string') return used
    if (state === undefined) return inputRequired(id, url, fault)
    // What comes back is in a stranger's hands: it names what is waited for, and decides nothing.
    if (state !== id) return { ...used, fault: unknownState(state, fault) }
    const hasOpened = isAccepted(responses) && (await isDecided(request, id))
    return hasOpened ? again() : used
  }
}

function inputRequired(id: string, url: string, { members }: Fault): InputRequired {
  const message = `This call can cost up to ${members.needed_usd} USD and needs your approval. Open the page to allow or refuse it.`
  return {
    resultType: 'input_required',
    inputRequests: { [QUESTION]: { method: 'elicitation/create', params: { mode: 'url', message, url } } },
    requestState: id,
  }
}

/** Another call than the one that was asked for needs an approval of its own: the refusal says where. */
function unknownState(state: unknown, fault: Fault): Fault {
  if (typeof state === 'string' && isId(state)) return fault
  return invalidRequest('requestState was not issued here. Make the call without it.')
}

function isAccepted(responses: unknown): boolean {
  if (!isMembers(responses)) return false
  const response = responses[QUESTION]
  return isMembers(response) && response.action === 'accept'
}

/** In the members of a message of 2026-07-28. */
export const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** Whether a client says that it can lead a person to a page. */
export function opensPages(capabilities: unknown): boolean {
  const { elicitation } = isMembers(capabilities) ? capabilities : {}
  return isMembers(elicitation) && isMembers(elicitation.url)
}

const SESSION = 'mcp-session-id'
const OPENS = 'opens-pages-'

/**
 * In versions before, a client says what it can do when it shakes hands, and no more. So it is given a name to bring along that says it:
 * there is no session, and any process reads it.
 */
export function sessionOf(body: unknown): Readonly<Record<string, string>> {
  if (!isMembers(body) || body.method !== 'initialize' || !isMembers(body.params)) return {}
  return opensPages(body.params.capabilities) ? { [SESSION]: OPENS + randomUUID() } : {}
}

export function saidToOpenPages(headers: AgentRequest['headers']): boolean {
  const session = headers[SESSION]
  return typeof session === 'string' && session.startsWith(OPENS)
}

const URL_ELICITATION_REQUIRED = -32_042

/** The same question as versions before 2026-07-28 have it: an error that says where the person has to go first. */
export function elicitationError({ inputRequests, requestState }: InputRequired) {
  const elicitations = Object.values(inputRequests).map(({ params }) => ({ ...params, elicitationId: requestState }))
  const message = elicitations.map((one) => `${one.message} ${one.url}`).join(' ')
  return { code: URL_ELICITATION_REQUIRED, message, data: { elicitations } }
}
