import { isObject, type JsonObject } from '../../json.ts'
import { hashOf, Random } from '../../random.ts'
import type { Asked } from '../../upstream.ts'
import type { Choice } from './answer.ts'
import type { Answer } from './dialect.ts'
import { deltasOf } from './frames.ts'
import type { Frame } from './stream.ts'
import { bytesOf } from './tokens.ts'

const EPOCH_SECONDS = Date.UTC(2026, 0, 1) / 1000
const YEAR_SECONDS = 31_536_000
const REASONS = { end: 'stop', length: 'length', call: 'tool_calls' } as const

export function openaiBody(answer: Answer): JsonObject {
  const { choices, usage } = answer
  return {
    ...opening(answer, 'chat.completion'),
    choices: choices.map((choice, index) => ({
      index,
      message: messageOf(choice, callId(answer.asked, index)),
      logprobs: null,
      finish_reason: REASONS[choice.stop],
    })),
    ...(usage && { usage }),
    service_tier: answer.tier ?? 'default',
  }
}

/** The members that all chunks of an answer have in common. From seed and request, so that the bytes are always the same. */
function opening({ asked, question }: Answer, object: string): JsonObject {
  const random = idRandom(asked)
  const id = `chatcmpl-${random.hex(29)}`
  return { id, object, created: EPOCH_SECONDS + random.between(0, YEAR_SECONDS), model: question.model }
}

function idRandom({ seed, bodySha256 }: Asked): Random {
  return new Random(hashOf(seed, 'openai id', bodySha256))
}

function callId({ seed, bodySha256 }: Asked, index: number): string {
  return `call_${new Random(hashOf(seed, 'openai call', bodySha256, String(index))).hex(24)}`
}

function messageOf({ text, tail, call }: Choice, id: string): JsonObject {
  if (call === undefined) return { role: 'assistant', content: text + tail, refusal: null }
  const { name, json } = call
  const calls = [{ id, type: 'function', function: { name, arguments: json } }]
  return { role: 'assistant', content: null, refusal: null, tool_calls: calls }
}

/** A chunk for the role of each choice, their deltas in turn, a chunk for the end of each, and the figures if asked for. */
export function* openaiFrames(answer: Answer): Iterable<Frame> {
  const { choices, asked, usage, deltaBytes } = answer
  const tellsUsage = usageAsked(asked.body) && usage !== undefined
  const shared = { ...opening(answer, 'chat.completion.chunk'), service_tier: answer.tier ?? 'default' }
  const chunk = (index: number, delta: JsonObject, finish_reason: string | null = null) => {
    const content = { ...shared, choices: [{ index, delta, logprobs: null, finish_reason }] }
    return frameText(tellsUsage ? { ...content, usage: null } : content)
  }

  for (const [index, choice] of choices.entries()) {
    const hidden = bytesOf(choice.reasoning, choice.call?.name ?? '')
    yield { text: chunk(index, firstDelta(choice, callId(asked, index))), kind: 'other', bytes: hidden }
  }
  const deltas = choices.map(({ text, tail, call }) =>
    deltasOf(call?.json ?? text, tail, deltaBytes)[Symbol.iterator](),
  )
  for (let open = choices.length; open > 0; ) {
    open = 0
    for (const [index, choice] of choices.entries()) {
      const next = deltas[index]?.next()
      if (!next || next.done) continue
      open += 1
      yield { text: chunk(index, deltaOf(choice, next.value)), kind: 'delta', bytes: bytesOf(next.value) }
    }
  }
  for (const [index, { stop }] of choices.entries())
    yield { text: chunk(index, {}, REASONS[stop]), kind: 'end', bytes: 0 }
  if (tellsUsage) yield { text: frameText({ ...shared, choices: [], usage }), kind: 'end', bytes: 0, usage }
  yield { text: 'data: [DONE]\n\n', kind: 'end', bytes: 0 }
}

function usageAsked(body: unknown): boolean {
  return isObject(body) && isObject(body.stream_options) && body.stream_options.include_usage === true
}

function firstDelta({ call }: Choice, id: string): JsonObject {
  if (call === undefined) return { role: 'assistant', content: '', refusal: null }
  const calls = [{ index: 0, id, type: 'function', function: { name: call.name, arguments: '' } }]
  return { role: 'assistant', content: null, tool_calls: calls, refusal: null }
}

function deltaOf({ call }: Choice, piece: string): JsonObject {
  return call === undefined ? { content: piece } : { tool_calls: [{ index: 0, function: { arguments: piece } }] }
}

function frameText(chunk: JsonObject): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}
