import type { JsonObject } from '../../json.ts'
import { hashOf, Random } from '../../random.ts'
import type { Asked } from '../../upstream.ts'
import type { Choice } from './answer.ts'
import type { Answer } from './dialect.ts'
import { deltasOf } from './frames.ts'
import { piecesOf } from './prose.ts'
import type { Frame } from './stream.ts'
import { bytesOf } from './tokens.ts'

const REASONS = { end: 'end_turn', length: 'max_tokens', call: 'tool_use' } as const

export function anthropicBody(answer: Answer): JsonObject {
  const { choices, usage } = answer
  return {
    ...opening(answer),
    content: choices.flatMap((choice) => blocksOf(choice, answer.asked)),
    stop_reason: REASONS[choices[0]?.stop ?? 'end'],
    stop_sequence: null,
    ...(usage && { usage }),
  }
}

function opening({ asked, question }: Answer): JsonObject {
  return { id: idOf('msg', asked), type: 'message', role: 'assistant', model: question.model }
}

/** From seed and request, so that the bytes are always the same. */
function idOf(prefix: string, { seed, bodySha256 }: Asked, at = 0): string {
  return `${prefix}_${new Random(hashOf(seed, at === 0 ? prefix : `${prefix} ${at}`, bodySha256)).hex(24)}`
}

function signatureOf({ seed, bodySha256 }: Asked): string {
  return Buffer.from(new Random(hashOf(seed, 'signature', bodySha256)).hex(64)).toString('base64')
}

function blocksOf({ reasoning, text, tail, calls }: Choice, asked: Asked): JsonObject[] {
  const blocks: JsonObject[] = []
  if (reasoning !== '') blocks.push({ type: 'thinking', thinking: reasoning, signature: signatureOf(asked) })
  if (text + tail !== '') blocks.push({ type: 'text', text: text + tail })
  for (const [at, { name, json }] of calls.entries())
    blocks.push({ type: 'tool_use', id: idOf('toolu', asked, at), name, input: inputIn(json) })
  return blocks
}

/** Arguments that were cut are no JSON, and then there are none. */
function inputIn(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return {}
  }
}

/** The start with the input's figures, each block with its deltas, and the end with all figures. */
export function* anthropicFrames(answer: Answer): Iterable<Frame> {
  const { usage } = answer
  const [choice] = answer.choices
  if (choice === undefined) return
  // The vendor counts a first token before it has said anything.
  const first = usage && { ...usage, output_tokens: Math.min(1, Number(usage.output_tokens)) }
  const message = { ...opening(answer), content: [], stop_reason: null, stop_sequence: null }
  yield {
    ...event('message_start', { message: first ? { ...message, usage: first } : message }),
    ...(first && { usage: first }),
  }
  yield* blockFrames(choice, answer)
  const delta = { stop_reason: REASONS[choice.stop], stop_sequence: null }
  yield {
    ...event('message_delta', { delta, ...(usage && { usage }) }),
    kind: 'end',
    ...(usage && { usage }),
  }
  yield { ...event('message_stop', {}), kind: 'end' }
}

function* blockFrames({ reasoning, text, tail, calls }: Choice, { asked, deltaBytes }: Answer): Iterable<Frame> {
  const thinkingBlock = { type: 'thinking', thinking: '', signature: '' }
  let index = 0
  if (reasoning !== '') {
    yield* block(index, thinkingBlock, 0, thinkingFrames(reasoning, deltaBytes, asked))
    index += 1
  }
  if (text + tail !== '') {
    yield* block(index, { type: 'text', text: '' }, 0, textFrames(index, text, tail, deltaBytes))
    index += 1
  }
  for (const [at, { name, json }] of calls.entries()) {
    const toolBlock = { type: 'tool_use', id: idOf('toolu', asked, at), name, input: {} }
    yield* block(index, toolBlock, bytesOf(name), callFrames(index, json, deltaBytes))
    index += 1
  }
}

function* block(index: number, content_block: JsonObject, bytes: number, deltas: Iterable<Frame>): Iterable<Frame> {
  yield event('content_block_start', { index, content_block }, bytes)
  if (index === 0) yield event('ping', {})
  yield* deltas
  yield event('content_block_stop', { index })
}

function* thinkingFrames(reasoning: string, deltaBytes: number, asked: Asked): Iterable<Frame> {
  for (const thinking of piecesOf(reasoning, deltaBytes)) yield delta(0, { type: 'thinking_delta', thinking }, thinking)
  const signature = { type: 'signature_delta', signature: signatureOf(asked) }
  yield event('content_block_delta', { index: 0, delta: signature })
}

function* callFrames(index: number, json: string, deltaBytes: number): Iterable<Frame> {
  // The vendor opens with an empty one.
  yield event('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json: '' } })
  for (const piece of piecesOf(json, deltaBytes))
    yield delta(index, { type: 'input_json_delta', partial_json: piece }, piece)
}

function* textFrames(index: number, text: string, tail: string, deltaBytes: number): Iterable<Frame> {
  for (const piece of deltasOf(text, tail, deltaBytes)) yield delta(index, { type: 'text_delta', text: piece }, piece)
}

function delta(index: number, change: JsonObject, generated: string): Frame {
  return { ...event('content_block_delta', { index, delta: change }, bytesOf(generated)), kind: 'delta' }
}

function event(type: string, members: JsonObject, bytes = 0): Frame {
  return { text: `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`, kind: 'other', bytes }
}
