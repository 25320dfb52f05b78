import { reported, reportedPart } from '../../deviants.ts'
import type { JsonObject } from '../../json.ts'
import { hashOf, Random } from '../../random.ts'
import type { Choice } from './answer.ts'
import type { Answer } from './dialect.ts'
import { deltasOf } from './frames.ts'
import { piecesOf } from './prose.ts'
import type { Call } from './script.ts'
import type { Frame } from './stream.ts'
import { bytesOf, tokensOfBytes } from './tokens.ts'

const REASONS = { end: 'STOP', length: 'MAX_TOKENS', call: 'STOP' } as const

export function geminiBody(answer: Answer, showsThoughts: boolean): JsonObject {
  const { choices, usage } = answer
  return {
    candidates: choices.map((choice, index) => ({
      content: { parts: partsOf(choice, showsThoughts), role: 'model' },
      finishReason: REASONS[choice.stop],
      index,
    })),
    ...(usage && { usageMetadata: usage }),
    ...ending(answer),
  }
}

/** From seed and request, so that the bytes are always the same. The path has the model. */
function ending({ asked, question }: Answer): JsonObject {
  const { seed, path, bodySha256 } = asked
  return { modelVersion: question.model, responseId: new Random(hashOf(seed, 'gemini id', path, bodySha256)).hex(22) }
}

function partsOf({ reasoning, text, tail, calls }: Choice, showsThoughts: boolean): JsonObject[] {
  const parts: JsonObject[] = []
  if (reasoning !== '' && showsThoughts) parts.push({ text: reasoning, thought: true })
  if (text + tail !== '') parts.push({ text: text + tail })
  return [...parts, ...calls.map(callPart)]
}

function callPart({ name, json }: Call): JsonObject {
  return { functionCall: { name, args: argsIn(json) } }
}

/** Arguments that were cut are no JSON, and then there are none. */
function argsIn(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return {}
  }
}

type Delta = { readonly index: number; readonly part: JsonObject; readonly text: string; readonly isThought: boolean }

/**
 * The deltas of all candidates in turn, and a last frame for each with its reason. Every frame reports what has been used
 * so far, as this vendor does. Thoughts that nobody sees are counted from the first frame on.
 */
export function* geminiFrames(answer: Answer, showsThoughts: boolean): Iterable<Frame> {
  const { choices } = answer
  const shared = ending(answer)
  let thoughtBytes = 0
  let spokenBytes = 0
  const frame = (kind: Frame['kind'], candidate: JsonObject, bytes: number): Frame => {
    const usage = usageSoFar(answer, thoughtBytes, spokenBytes)
    const chunk = { candidates: [candidate], ...(usage && { usageMetadata: usage }), ...shared }
    return { text: frameText(chunk), kind, bytes, ...(usage && { usage }) }
  }

  let hiddenBytes = showsThoughts ? 0 : bytesOf(...choices.map(({ reasoning }) => reasoning))
  thoughtBytes += hiddenBytes
  for (const { index, part, text, isThought } of inTurn(answer, showsThoughts)) {
    const bytes = bytesOf(text)
    if (isThought) thoughtBytes += bytes
    else spokenBytes += bytes
    yield frame('delta', { content: { parts: [part], role: 'model' }, index }, bytes + hiddenBytes)
    hiddenBytes = 0
  }
  for (const [index, { stop }] of choices.entries()) {
    const content = { parts: [{ text: '' }], role: 'model' }
    yield frame('end', { content, finishReason: REASONS[stop], index }, hiddenBytes)
    hiddenBytes = 0
  }
}

/** What the vendor leaves out is zero. */
function usageSoFar({ usage, toldTimes }: Answer, thoughtBytes: number, spokenBytes: number): JsonObject | undefined {
  if (usage === undefined || usage.totalTokenCount === 0) return usage
  const { candidatesTokenCount: _, thoughtsTokenCount: __, totalTokenCount: ___, ...input } = usage
  const thoughts = reportedPart(tokensOfBytes(thoughtBytes), toldTimes)
  return geminiUsage(input, reported(tokensOfBytes(thoughtBytes + spokenBytes), toldTimes) - thoughts, thoughts)
}

export function geminiUsage(input: JsonObject, candidates: number, thoughts: number): JsonObject {
  return {
    ...input,
    ...(candidates > 0 && { candidatesTokenCount: candidates }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: Number(input.promptTokenCount) + candidates + thoughts,
  }
}

function* inTurn({ choices, deltaBytes }: Answer, showsThoughts: boolean): Iterable<Delta> {
  const open = new Set(choices.map((choice, index) => deltasIn(choice, index, deltaBytes, showsThoughts)))
  while (open.size > 0) {
    for (const deltas of open) {
      const next = deltas.next()
      if (next.done) open.delete(deltas)
      else yield next.value
    }
  }
}

/** A call comes whole. */
function* deltasIn(choice: Choice, index: number, deltaBytes: number, showsThoughts: boolean): Generator<Delta> {
  const { reasoning, text, tail, calls } = choice
  if (showsThoughts) {
    for (const piece of piecesOf(reasoning, deltaBytes))
      yield { index, part: { text: piece, thought: true }, text: piece, isThought: true }
  }
  for (const piece of deltasOf(text, tail, deltaBytes))
    yield { index, part: { text: piece }, text: piece, isThought: false }
  for (const call of calls) yield { index, part: callPart(call), text: call.name + call.json, isThought: false }
}

function frameText(chunk: JsonObject): string {
  return `data: ${JSON.stringify(chunk)}\r\n\r\n`
}
