import type { AgentRequest } from '../http/agent-routes.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import { formatUsd, type Nanos, nanos, plus, usd, ZERO } from '../kernel/money.ts'
import type { ReadLeft } from './budgets.ts'
import { hasRoomForPicture, type Room, roomOfAnswer } from './pictures.ts'
import { type Cap, capOf } from './price-cap.ts'
import { moneyOf, type Told, tell } from './tell.ts'
import type { ToolArguments } from './tool-arguments.ts'
import { type Content, type ToolResult, text } from './tool-result.ts'
import { isOfEarlierCall, type Use, type Used } from './use.ts'

type Parts = {
  readonly use: Use
  readonly ids: Ids
  readonly readLeft: ReadLeft
  /** Whether an operation is asked for pictures, by its id. */
  readonly makesPictures: (operationId: string) => boolean
  /** Of our member of `_meta`. */
  readonly metaName: string
}

type Batch = ToolArguments<'batch_use'>
type BatchCall = Batch['calls'][number]
type Entry = { readonly structured: Readonly<Record<string, unknown>>; readonly isError: boolean }

/**
 * Several calls, one after the other: each is held against what its predecessors have left of the cap, so that all of them together
 * never cost more. A caller who has left begins no further one.
 */
export function createBatch({ use, ids, readLeft, makesPictures, metaName }: Parts) {
  return async (
    request: AgentRequest,
    { calls, max_total_usd }: Batch,
    key: string | undefined,
  ): Promise<ToolResult> => {
    const cap = usd(capOf(max_total_usd).maxCost)
    const room = roomOfAnswer()
    const content: Content[] = []
    const entries: Entry[] = []
    const requestBytes = request.memory.bytes
    let sums = NO_SUMS
    let stopped: string | undefined

    let { caller } = request

    /** Why a call does not begin: nobody would have what it costs, or it is not its caller's any more. */
    async function whyNot({ operation_id: id }: BatchCall, index: number): Promise<string | undefined> {
      if (request.hasLeft()) return 'You had left.'
      if (request.isDraining()) return STOPPING
      if (stopped !== undefined) return stopped
      if (makesPictures(id) && !hasRoomForPicture(room)) return NO_PICTURES
      if (index === 0) return undefined
      try {
        // Those before may have taken minutes: the key may have been revoked, or have got another budget.
        caller = await request.callerNow()
        return undefined
      } catch (thrown) {
        stopped = asFault(thrown).message
        return stopped
      }
    }

    for (const [index, wanted] of calls.entries()) {
      const reason = await whyNot(wanted, index)
      if (reason !== undefined) {
        entries.push({ structured: { operation_id: wanted.operation_id, not_begun: reason }, isError: true })
        content.push(text(`Call ${index + 1}, ${wanted.operation_id}: not begun. ${reason}`))
        continue
      }
      const committed = committedOf(sums)
      const used = await use(
        { ...request, caller },
        {
          id: ids.next(),
          operationId: wanted.operation_id,
          given: wanted.arguments,
          ...capOfCall(wanted.max_price_usd, nanos(cap - committed)),
          idempotencyKey: key === undefined ? undefined : `${key}#${index + 1}`,
        },
      )
      sums = withCall(sums, used)
      if (mayBeUnended(used, key))
        stopped = `Call ${index + 1} of an earlier try may not have ended. Send the batch again later.`
      const told = tellWithin(room, calls.length - index, ofTotal(used, wanted.max_price_usd, cap, committed))
      entries.push({ structured: told.structured, isError: told.isError })
      content.push(text(`Call ${index + 1}, ${wanted.operation_id}:`), ...told.content)
      // What was shown of an answer is kept; the rest of it is not.
      request.memory.shrink(requestBytes + 2 * keptBytes(content))
    }
    const { money, total } = await totalOf(request, sums, entries)
    content.push(text(totalWords(total, cap)))
    return {
      content,
      structuredContent: { request_id: request.id, results: entries.map(({ structured }) => structured), total },
      ...(total.failed === calls.length && { isError: true as const }),
      _meta: { [metaName]: money },
    }
  }

  async function totalOf({ id, caller }: AgentRequest, sums: Sums, entries: readonly Entry[]) {
    const { spent, held, before, unknown, balance } = sums
    const left = await readLeft(caller, balance)
    const atMost = unknown > ZERO ? { atMost: unknown } : {}
    const money = moneyOf({ id, operationId: '', cost: spent, held, balance, ...atMost }, left)
    const { request_id, ...told } = money
    const total = {
      calls: entries.length,
      failed: entries.filter(({ isError }) => isError).length,
      ...told,
      ...(before > ZERO && { charged_before_usd: formatUsd(before) }),
    }
    return { money, total }
  }
}

const STOPPING = 'This process is shutting down. Send this call again; another one will answer.'
const NO_PICTURES = 'The images do not fit into this answer. Make this call by itself.'

/** What the calls of a batch have taken of its cap. */
type Sums = {
  readonly spent: Nanos
  readonly held: Nanos
  /** What the same calls were charged when they were sent before, by their idempotency key. */
  readonly before: Nanos
  /** The most of what nobody knows. */
  readonly unknown: Nanos
  readonly balance: Nanos | undefined
}

const NO_SUMS: Sums = { spent: ZERO, held: ZERO, before: ZERO, unknown: ZERO, balance: undefined }

function withCall({ spent, held, before, unknown, balance }: Sums, used: Used): Sums {
  return {
    spent: plus(spent, used.cost ?? ZERO),
    held: plus(held, used.held ?? ZERO),
    before: plus(before, chargedBefore(used)),
    unknown: plus(unknown, used.atMost ?? ZERO),
    balance: used.balance ?? balance,
  }
}

const committedOf = ({ spent, held, before, unknown }: Sums) => plus(plus(spent, held), plus(before, unknown))

function chargedBefore({ fault }: Used): Nanos {
  const { cost_usd: cost } = fault?.members ?? {}
  return fault?.code === 'idempotency_completed' && typeof cost === 'string' ? usd(cost) : ZERO
}

/** Whether a call may have been sent before by its key, and may still cost whatever its cap was then. */
function mayBeUnended({ fault }: Used, key: string | undefined): boolean {
  return (
    fault !== undefined &&
    (isOfEarlierCall(fault) || (key !== undefined && fault.code === 'billing_dependency_timeout'))
  )
}

/** Tells within an equal part of the room for words, and of what those before it have left: no call is paid for in vain. */
function tellWithin(room: Room, calls: number, used: Used): Told {
  const ofOthers = room.characters - Math.floor(room.characters / calls)
  room.characters -= ofOthers
  const told = tell(used, NOTHING_KNOWN, room)
  room.characters += ofOthers
  return told
}

const NOTHING_KNOWN = { balance: undefined, budget: undefined }

function capOfCall(own: number | undefined, left: Nanos): Cap {
  const named = own === undefined ? undefined : capOf(own)
  return named !== undefined && usd(named.maxCost) < left ? named : { maxCost: formatUsd(left < ZERO ? ZERO : left) }
}

/** A call that is refused because of the others says what is left of their cap, and not that it had one itself. */
function ofTotal(used: Used, own: number | undefined, cap: Nanos, committed: Nanos): Used {
  const { fault } = used
  const { needed_usd: needed } = fault?.members ?? {}
  if (fault?.code !== 'cost_cap_exceeded' || typeof needed !== 'string') return used
  if (own !== undefined && usd(capOf(own).maxCost) <= cap - committed) return used
  const members = {
    needed_usd: needed,
    left_usd: formatUsd(nanos(cap - committed)),
    needed_total_usd: formatUsd(plus(committed, usd(needed))),
    max_total_usd: formatUsd(cap),
  }
  return {
    ...used,
    fault: new Fault('cost_cap_exceeded', { detail: 'Raise max_total_usd, or make this call by itself.', members }),
  }
}

function keptBytes(content: readonly Content[]): number {
  return content.reduce((sum, one) => sum + (one.type === 'text' ? one.text.length : one.data.length), 0)
}

type Total = {
  readonly calls: number
  readonly failed: number
  readonly cost_usd?: string
  readonly held_usd?: string
  readonly cost_at_most_usd?: string
  readonly charged_before_usd?: string
}

function totalWords(total: Total, cap: Nanos): string {
  const { calls, failed, cost_usd = '0', held_usd, cost_at_most_usd: unknown, charged_before_usd: before } = total
  const parts = [
    `${cost_usd} USD`,
    ...(held_usd === undefined || usd(held_usd) === ZERO ? [] : [`${held_usd} USD held`]),
    ...(unknown === undefined ? [] : [`at most ${unknown} USD not known yet`]),
    ...(before === undefined ? [] : [`${before} USD charged before`]),
  ]
  return `${calls - failed} of ${calls} calls answered. Cost of all: ${parts.join(', ')}, of at most ${formatUsd(cap)} USD.`
}
