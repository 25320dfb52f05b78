import { countIn, memberOf } from '../catalogue/price.ts'
import { createMessageEnding } from './anthropic-end.ts'
import { jsonText, wordsIn } from './generated-text.ts'
import { isMembers } from './members.ts'
import type { Calls, ModelAsk, ReplyForm, Reported, StreamReader } from './protocol.ts'
import type { Frame } from './sse.ts'
import { callsOf, itemsOf, partsOf, reportedOf, tierOf } from './usage.ts'
import { createWithholdingReader, type Reading } from './withholding-reader.ts'

export function usageOf(json: unknown): Reported {
  return countsIn(memberOf(json, 'usage'))
}

export function formOf(json: unknown): ReplyForm {
  if (memberOf(json, 'error')) return 'nothing'
  return Array.isArray(memberOf(json, 'content')) ? 'answer' : 'unreadable'
}

export function textOf(json: unknown): string {
  let text = ''
  for (const block of itemsOf(memberOf(json, 'content')))
    text += generatedIn(block) + jsonText(memberOf(block, 'input'))
  return text
}

/**
 * The answer ends with the first message_delta that has a stop reason, and the stream with message_stop. That one is an end
 * also where no stop reason came: it says by itself that the message is whole.
 */
export function createReader({ toolCalls }: Pick<ModelAsk, 'toolCalls'> = {}): StreamReader {
  let reported: Reported = {}
  const calls = { web_search: 0, web_fetch: 0 }
  const isFound = (block: unknown) => toolCalls !== undefined && FOUND.test(wordsIn(memberOf(block, 'type')))

  function read(frame: Frame, json: unknown): Reading {
    switch (kindOf(frame, json)) {
      case 'message_start': {
        // What it says of the output is written before there is any.
        const { output: _, ...input } = countsIn(memberOf(json, 'message', 'usage'))
        reported = { ...reported, ...input }
        return {}
      }
      case 'content_block_start': {
        const block = memberOf(json, 'content_block')
        if (toolCalls !== undefined) countCall(block, calls)
        return isFound(block) ? { unread: null } : { text: startIn(block) }
      }
      case 'content_block_delta':
        return { text: generatedIn(memberOf(json, 'delta')), isPlain: true }
      case 'message_delta': {
        const usage = memberOf(json, 'usage')
        const said = countsIn(usage)
        reported = { ...reported, ...said }
        const isStop = Boolean(memberOf(json, 'delta', 'stop_reason'))
        const isReport = said.output !== undefined
        return { isStop, isReport, takesCost: isMembers(usage) ? 'in_usage' : isStop ? 'beside' : undefined }
      }
      case 'message_stop':
        return { isStop: true, isEnd: true, takesCost: 'beside_if_nowhere' }
      case 'error':
        return { isError: true }
      default:
        return {}
    }
  }

  return createWithholdingReader({
    read,
    reported: () => ({ ...reported, ...callsOf(moreOf(reported.calls, calls)) }),
    ending: createMessageEnding(),
  })
}

type CallCounts = { web_search: number; web_fetch: number }

/** A stream that breaks off has not come to the report of its calls. One that fails is billed by nobody. */
function countCall(block: unknown, calls: CallCounts): void {
  const type = memberOf(block, 'type')
  const [, found] = FOUND.exec(wordsIn(type)) ?? []
  for (const tool of ['web_search', 'web_fetch'] as const) {
    if (type === 'server_tool_use' && memberOf(block, 'name') === tool) calls[tool] += 1
    if (found === tool && FAILED.test(wordsIn(memberOf(block, 'content', 'type')))) calls[tool] -= 1
  }
}

/** Of each tool as many as one of the two has. */
function moreOf({ web_search = 0, web_fetch = 0 }: Calls = {}, counted: CallCounts): CallCounts {
  return {
    web_search: Math.max(web_search, counted.web_search),
    web_fetch: Math.max(web_fetch, counted.web_fetch),
  }
}

/** What a tool has found that the upstream ran, where such a one was asked for: nobody has generated that. */
const FOUND = /^(web_search|web_fetch)_tool_result$/
const FAILED = /_error$/

/** The name of the event is in its data again, and callers go by that; but by the event's name they tell an error. */
function kindOf({ event }: Frame, json: unknown): unknown {
  if (event === 'error') return event
  return isMembers(json) ? (memberOf(json, 'type') ?? event) : undefined
}

/** A call of a tool starts with an empty input as a rule, and has it whole where an upstream does not stream it. */
function startIn(block: unknown): string {
  const input = memberOf(block, 'input')
  return generatedIn(block) + (isMembers(input) && Object.keys(input).length > 0 ? jsonText(input) : '')
}

/** What caches have is not in the protocol's input tokens. */
function countsIn(usage: unknown): Reported {
  const written = countIn(memberOf(usage, 'cache_creation_input_tokens'))
  const forHours = countIn(memberOf(usage, 'cache_creation', 'ephemeral_1h_input_tokens'))
  const forMinutes = countIn(memberOf(usage, 'cache_creation', 'ephemeral_5m_input_tokens'))
  // Where the two contradict each other, the larger counts.
  const parts = forHours === undefined && forMinutes === undefined ? undefined : (forHours ?? 0) + (forMinutes ?? 0)
  const cacheWrite = parts === undefined ? written : Math.max(parts, written ?? 0)
  return {
    ...reportedOf({
      input: countIn(memberOf(usage, 'input_tokens')),
      output: countIn(memberOf(usage, 'output_tokens')),
      cacheRead: countIn(memberOf(usage, 'cache_read_input_tokens')),
      cacheWrite,
    }),
    ...partsOf({ cache_write_1h: forHours }),
    ...callsOf({
      web_search: countIn(memberOf(usage, 'server_tool_use', 'web_search_requests')),
      web_fetch: countIn(memberOf(usage, 'server_tool_use', 'web_fetch_requests')),
    }),
    ...tierOf(memberOf(usage, 'service_tier')),
  }
}

/** What the model wrote in a block, or in a part of one. The name is that of a tool. */
function generatedIn(block: unknown): string {
  if (!isMembers(block)) return ''
  let text = ''
  for (const member of ['text', 'thinking', 'name', 'partial_json']) text += wordsIn(memberOf(block, member))
  return text
}
