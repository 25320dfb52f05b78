import type { AgentRequest } from '../http/agent-routes.ts'
import { Fault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import { formatUsd, type Nanos, nanos, plus, usd, wholeMicros, ZERO } from '../kernel/money.ts'
import type { ReadLeft } from './budgets.ts'
import { roomOfAnswer } from './pictures.ts'
import { capText } from './price-cap.ts'
import { moneyOf, tell } from './tell.ts'
import type { ToolArguments } from './tool-arguments.ts'
import { type Content, type ToolResult, text } from './tool-result.ts'
import type { Use, Used } from './use.ts'

type Parts = {
  readonly use: Use
  readonly ids: Ids
  readonly readLeft: ReadLeft
  /** Of our member of `_meta`. */
  readonly metaName: string
}

type Batch = ToolArguments<'batch_use'>
type Entry = { readonly structured: Readonly<Record<string, unknown>>; readonly isError: boolean }

/**
 * Several calls, one after the other: each is held against what its predecessors have left of the cap, so that all of them together
 * never cost more. A caller who has left begins no further one.
 */
export function createBatch({ use, ids, readLeft, metaName }: Parts) {
  return async (
    request: AgentRequest,
    { calls, max_total_usd }: Batch,
    key: string | undefined,
  ): Promise<ToolResult> => {
    const cap = usd(capText(max_total_usd))
    const room = roomOfAnswer()
    const content: Content[] = []
    const entries: Entry[] = []
    const requestBytes = request.memory.bytes
    let spent: Nanos = ZERO
    let held: Nanos = ZERO
    let balance: Nanos | undefined
    for (const [index, wanted] of calls.entries()) {
      if (request.hasLeft()) {
        entries.push({ structured: { operation_id: wanted.operation_id, not_begun: 'You had left.' }, isError: true })
        continue
      }
      const committed = plus(spent, held)
      const used = await use(request, {
        id: ids.next(),
        operationId: wanted.operation_id,
        given: wanted.arguments,
        maxCost: capOfCall(wanted.max_price_usd, nanos(cap - committed)),
        idempotencyKey: key === undefined ? undefined : `${key}#${index + 1}`,
      })
      spent = plus(spent, used.cost ?? ZERO)
      held = plus(held, used.held ?? ZERO)
      balance = used.balance ?? balance
      const told = tell(ofTotal(used, wanted.max_price_usd, cap, committed), NOTHING_KNOWN, room)
      entries.push({ structured: told.structured, isError: told.isError })
      content.push(text(`Call ${index + 1}, ${wanted.operation_id}:`), ...told.content)
      // What was shown of an answer is kept; the rest of it is not.
      request.memory.shrink(requestBytes + 2 * keptBytes(content))
    }
    const left = await readLeft(request.caller, balance)
    const { request_id, ...money } = moneyOf({ id: request.id, operationId: '', cost: spent, held, balance }, left)
    const total = { calls: calls.length, failed: entries.filter(({ isError }) => isError).length, ...money }
    content.push(text(totalWords(total, cap)))
    return {
      content,
      structuredContent: { request_id, results: entries.map(({ structured }) => structured), total },
      ...(total.failed === calls.length && { isError: true as const }),
      _meta: { [metaName]: { request_id, ...money, cost_micros_usd: Number(wholeMicros(spent)) } },
    }
  }
}

const NOTHING_KNOWN = { balance: undefined, budget: undefined }

function capOfCall(own: number | undefined, left: Nanos): string {
  const most = left < ZERO ? ZERO : left
  const named = own === undefined ? undefined : usd(capText(own))
  return formatUsd(named !== undefined && named < most ? named : most)
}

/** A call that is refused because of the others says what is left of their cap, and not that it had one itself. */
function ofTotal(used: Used, own: number | undefined, cap: Nanos, committed: Nanos): Used {
  const { fault } = used
  const { needed_usd: needed } = fault?.members ?? {}
  if (fault?.code !== 'cost_cap_exceeded' || typeof needed !== 'string') return used
  if (own !== undefined && usd(capText(own)) <= cap - committed) return used
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

type Total = { readonly calls: number; readonly failed: number; readonly cost_usd?: string; readonly held_usd?: string }

function totalWords({ calls, failed, cost_usd = '0', held_usd }: Total, cap: Nanos): string {
  const holding = held_usd === undefined || usd(held_usd) === ZERO ? '' : `, ${held_usd} USD held`
  return `${calls - failed} of ${calls} calls answered. Cost of all: ${cost_usd} USD${holding}, of at most ${formatUsd(cap)} USD.`
}
