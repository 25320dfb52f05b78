import { isObject, type JsonObject } from '../../json.ts'
import { hashOf, Random } from '../../random.ts'
import type { Asked } from '../../upstream.ts'
import type { Choice } from './answer.ts'
import type { Answer } from './dialect.ts'
import { deltasOf } from './frames.ts'
import { piecesOf } from './prose.ts'
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
      message: messageOf(choice, (at) => callId(answer.asked, index, at)),
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

function callId({ seed, bodySha256 }: Asked, choice: number, call: number): string {
  const place = call === 0 ? String(choice) : `${choice} ${call}`
  return `call_${new Random(hashOf(seed, 'openai call', bodySha256, place)).hex(24)}`
}

/** The id of a choice's call, by its place. */
type IdOf = (at: number) => string

function messageOf({ text, tail, calls }: Choice, idOf: IdOf): JsonObject {
  if (calls.length === 0) return { role: 'assistant', content: text + tail, refusal: null }
  const written = calls.map(({ name, json }, at) => ({
    id: idOf(at),
    type: 'function',
    function: { name, arguments: json },
  }))
  return { role: 'assistant', content: text === '' ? null : text, refusal: null, tool_calls: written }
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
    const { delta, bytes } = firstDelta(choice, callId(asked, index, 0))
    yield { text: chunk(index, delta), kind: 'other', bytes: bytes + bytesOf(choice.reasoning) }
  }
  const deltas = choices.map((choice, index) => deltasIn(choice, (at) => callId(asked, index, at), deltaBytes))
  for (let open = choices.length; open > 0; ) {
    open = 0
    for (const [index, written] of deltas.entries()) {
      const next = written.next()
      if (next.done) continue
      open += 1
      const { delta, ...frame } = next.value
      yield { text: chunk(index, delta), ...frame }
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

type Delta = { readonly delta: JsonObject; readonly kind: 'delta' | 'other'; readonly bytes: number }

/** Has the first call with it, where nothing is said before. */
function firstDelta({ text, tail, calls: [call] }: Choice, id: string): Delta {
  if (call === undefined || text + tail !== '')
    return { delta: { role: 'assistant', content: '', refusal: null }, kind: 'other', bytes: 0 }
  const { delta, ...opened } = openedCall(0, call.name, id)
  return { delta: { role: 'assistant', content: null, ...delta, refusal: null }, ...opened }
}

function openedCall(index: number, name: string, id: string): Delta {
  const calls = [{ index, id, type: 'function', function: { name, arguments: '' } }]
  return { delta: { tool_calls: calls }, kind: 'other', bytes: bytesOf(name) }
}

function* deltasIn({ text, tail, calls }: Choice, idOf: IdOf, deltaBytes: number): Generator<Delta> {
  for (const piece of deltasOf(text, tail, deltaBytes))
    yield { delta: { content: piece }, kind: 'delta', bytes: bytesOf(piece) }
  for (const [index, { name, json }] of calls.entries()) {
    if (index > 0 || text + tail !== '') yield openedCall(index, name, idOf(index))
    for (const piece of piecesOf(json, deltaBytes)) {
      const delta = { tool_calls: [{ index, function: { arguments: piece } }] }
      yield { delta, kind: 'delta', bytes: bytesOf(piece) }
    }
  }
}

function frameText(chunk: JsonObject): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}
