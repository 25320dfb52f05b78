import { hash } from 'node:crypto'
import { hashOf, Random } from '../../random.ts'
import type { Knobs } from '../../upstream.ts'
import { objectOfSchema } from './json-of-schema.ts'
import type { MagicModel } from './magic-models.ts'
import { cutTo, proseOfBytes, proseOfWords } from './prose.ts'
import type { Question, Tool } from './question.ts'
import { type Call, type Turn, turnOf } from './script.ts'
import { BYTES_PER_TOKEN, bytesOf } from './tokens.ts'

/** One of the answers to a question: what was thought, and then a text, calls of tools, or both. */
export type Choice = {
  readonly reasoning: string
  readonly text: string
  /** The end of the text, which is a delta of its own. */
  readonly tail: string
  readonly calls: readonly Call[]
  readonly stop: 'end' | 'length' | 'call'
}

const PROSE_WORDS = 60
const LONG_TOKENS = 2000
const CHECKSUM_TOKENS = 200
const CHECKSUM_BYTES = ' sha256:'.length + 64
/** All choices together, so that an answer always fits in memory. */
const OUTPUT_LIMIT = 32 * 1024 * 1024
/** Texts of the request that the answer depends on, the newest. */
const HASHED_SEGMENTS = 16
const LOOKUP: Tool = { name: 'lookup', schema: { properties: { query: { type: 'string' } } } }

/** The answers, from seed, question and knobs alone. */
export function choicesFor(question: Question, magic: MagicModel, knobs: Knobs, seed: number): readonly Choice[] {
  const { choices, maxTokens, segments, model } = question
  const texts = segments.slice(-HASHED_SEGMENTS).map(({ text }) => text)
  const state = hashOf(seed, model, String(segments.length), ...texts)
  const most = Math.min((maxTokens ?? OUTPUT_LIMIT) * BYTES_PER_TOKEN, Math.floor(OUTPUT_LIMIT / choices))
  return Array.from({ length: choices }, (_, index) =>
    choiceFor(question, magic, knobs, new Random(state + index), most),
  )
}

function choiceFor(question: Question, magic: MagicModel, knobs: Knobs, random: Random, most: number): Choice {
  const reasoning = cutTo(most, proseOfBytes(random, reasoningBytes(question, knobs)))
  const room = most - reasoning.length
  const turn = knobs.script && turnOf(knobs.script, question)
  if (turn) return { reasoning, ...turnWithin(room, turn) }
  const tool = toolFor(question, magic)
  if (tool && magic.says !== 'checksum') return { reasoning, ...callOf(tool, random, room) }
  const wanted = knobs.outputTokens === undefined ? undefined : knobs.outputTokens * BYTES_PER_TOKEN - reasoning.length
  if (magic.says === 'checksum') return { reasoning, ...checksum(random, wanted, question.maxTokens, room) }
  const whole = textFor(question, magic, random)
  const text = wanted === undefined || question.schema !== undefined ? whole : fitted(whole, wanted, random)
  const cut = cutTo(room, text)
  return { reasoning, text: cut, tail: '', calls: [], stop: cut === text ? 'end' : 'length' }
}

function toolFor({ tool, isBound }: Question, { calls }: MagicModel): Tool | undefined {
  if (calls === 'bound' && !isBound) return undefined
  return tool ?? (calls === 'always' ? LOOKUP : undefined)
}

/** A directive says how long the whole answer is, and thought takes at most half of it. */
function reasoningBytes({ reasoningTokens }: Question, { outputTokens }: Knobs): number {
  const bytes = reasoningTokens * BYTES_PER_TOKEN
  return outputTokens === undefined ? bytes : Math.min(bytes, Math.floor((outputTokens * BYTES_PER_TOKEN) / 2))
}

type Said = Omit<Choice, 'reasoning'>

/** A name can't be cut, so a call for which there is no room is not begun. */
function turnWithin(room: number, { text: whole, calls }: Turn): Said {
  const text = cutTo(room, whole)
  const begun: Call[] = []
  let left = room - bytesOf(text)
  let isCut = text !== whole
  for (const { name, json } of calls) {
    isCut ||= left < bytesOf(name)
    if (isCut) break
    const written = cutTo(left - bytesOf(name), json)
    begun.push({ name, json: written })
    left -= bytesOf(name, written)
    isCut = written !== json
  }
  const end = calls.length > 0 ? 'call' : 'end'
  return { text, tail: '', calls: begun, stop: isCut ? 'length' : end }
}

function callOf({ name, schema }: Tool, random: Random, room: number): Said {
  return turnWithin(room, { text: '', calls: [{ name, json: JSON.stringify(objectOfSchema(schema, random)) }] })
}

/** Words, and last the SHA-256 of all of them, so that a reader can tell that none was lost. */
function checksum(random: Random, wanted: number | undefined, maxTokens: number | undefined, room: number): Said {
  const length = wanted ?? (maxTokens === undefined ? CHECKSUM_TOKENS * BYTES_PER_TOKEN : room)
  const text = proseOfBytes(random, Math.min(length, room) - CHECKSUM_BYTES)
  const tail = ` sha256:${hash('sha256', text)}`
  const cut = cutTo(room - text.length, tail)
  return { text, tail: cut, calls: [], stop: cut === tail ? 'end' : 'length' }
}

function textFor({ messages, prompt, toolResult, schema }: Question, { says }: MagicModel, random: Random): string {
  if (schema !== undefined) return JSON.stringify(objectOfSchema(schema, random))
  const count = messages === 1 ? '1 message' : `${messages} messages`
  if (toolResult !== undefined) return `The tool returned: ${toolResult} (${count})`
  if (says === 'prose') return `I have read ${count}. ${proseOfWords(random, PROSE_WORDS)}`
  if (says === 'long') {
    const opening = `I have read ${count}. `
    return opening + proseOfBytes(random, LONG_TOKENS * BYTES_PER_TOKEN - opening.length)
  }
  return messages === 1 ? `Echo: ${prompt}` : `Echo: ${prompt} (${count})`
}

/** The text made exactly so many bytes long. */
function fitted(text: string, bytes: number, random: Random): string {
  const cut = cutTo(bytes, text)
  const missing = bytes - bytesOf(cut)
  if (missing <= 0) return cut
  return cut === text && missing > 1 ? `${cut} ${proseOfBytes(random, missing - 1)}` : cut + '.'.repeat(missing)
}
