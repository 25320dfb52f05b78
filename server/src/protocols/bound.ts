import { estimateTokens } from './estimate.ts'
import type { InputParts, ModelAsk, ModelLimits, PartKind } from './protocol.ts'

/** Everything of a request that can reach a model's prompt, in whatever protocol it came. */
export type Prompt = {
  /** What is put into the prompt as it is. */
  readonly texts: readonly string[]
  /** What an upstream writes into the prompt in a form of its own: tools, calls of tools, names. */
  readonly structures: readonly unknown[]
  /** Members of which we do not know that they stay out of the prompt. They are in the bound, and nowhere else. */
  readonly others: unknown
  /** What is no text, by its kind; undefined where the kind is not known. */
  readonly parts: readonly (PartKind | undefined)[]
  readonly messages: number
  readonly tools: number
  /** Tokens that an upstream declares for tools whose definition it has itself. */
  readonly declaredTokens: number
  /** Where the upstream runs tools itself. */
  readonly hosted?: Hosted
}

/** How many calls of its tools an upstream may make, and how often the model may read all of it again. */
export type Hosted = { readonly calls: number; readonly rounds: number }

/** What the definition of a tool takes that the upstream has and runs itself. */
export const HOSTED_TOOL_TOKENS = 2_000

/**
 * What templates add around a conversation, at the most: first and last tokens and a standard preamble for a request,
 * instructions where there are tools, a role and its marks for each message, the frame of each tool, the marks around
 * each text and part.
 */
export const OVERHEAD = { request: 256, anyTools: 1024, message: 16, tool: 32, text: 4, part: 16 } as const

/** Of each name or item: its comma, its colon, and its own indented line. */
const TOKENS_PER_NODE = 4
const QUOTES = 2
const ESCAPED_BYTES = 6
/** Normalising is quadratic in a row of marks; in pieces of this many code units it is linear. */
const NORMALISED_AT_ONCE = 64
/** What is brought by a call of a tool that fails, or is one too many: the name of an error. */
const FAILED_CALL_TOKENS = 128
const TYPICAL_PART_TOKENS = 1000
const TYPICAL_MESSAGE_TOKENS = 4
const LONG_STRUCTURE_BYTES = 1_048_576
const TYPICAL_TOKEN_BYTES = 4

/** What is known of the input before a model has read it, and its text, to be counted afterwards. */
export function inputOf(
  prompt: Prompt,
  limits: ModelLimits,
): Pick<ModelAsk, 'inputMost' | 'inputEstimate' | 'inputText' | 'partsMost' | 'inputParts'> {
  const once = mostTokens(prompt, limits)
  const inputMost = prompt.hosted === undefined ? once : mostOfRounds(once, prompt.hosted, limits)
  return {
    inputMost,
    ...(prompt.parts.length > 0 && {
      partsMost: partsMostOf(prompt, limits),
      inputParts: typicalParts(prompt, limits),
    }),
    inputEstimate: typicalTokens(prompt, limits, inputMost),
    inputText: () => [...prompt.texts, ...prompt.structures.map(jsonOf)].join('\n'),
  }
}

/**
 * In each round a model reads its prompt once more, with what it wrote itself and what calls have brought, within its context window.
 * All calls may be made in the first round, and all later ones read what they brought.
 */
function mostOfRounds(once: number, { calls, rounds }: Hosted, limits: ModelLimits): number {
  const { contextWindow, outputMost, sold } = limits
  const brought = calls * (sold?.toolInput ?? contextWindow) + rounds * FAILED_CALL_TOKENS
  return once + rounds * Math.min(contextWindow, once + brought + outputMost)
}

/** How much of it may be in classes that text does not have. Whatever is no picture may have both pictures and sound in it. */
function partsMostOf({ parts, hosted }: Prompt, { contextWindow, partTokens }: ModelLimits) {
  const most = { image: 0, any: 0 }
  for (const kind of parts)
    most[kind === 'image' ? 'image' : 'any'] += OVERHEAD.part + (tokensOfPart(kind, partTokens) ?? contextWindow)
  const ofRounds = (tokens: number) => Math.min(contextWindow, tokens) * ((hosted?.rounds ?? 0) + 1)
  return { image: ofRounds(most.image), any: ofRounds(most.any) }
}

/**
 * No tokenizer makes more tokens of a prompt: each token stands for a byte of it at least. Counted are the bytes of UTF-8,
 * or of a normal form where that has more, because some tokenizers normalise first.
 */
function mostTokens(prompt: Prompt, { contextWindow, partTokens }: ModelLimits): number {
  let most = OVERHEAD.request + prompt.declaredTokens + bytesOfStructure(prompt.others, contextWindow)
  most += prompt.messages * OVERHEAD.message
  if (prompt.tools > 0) most += OVERHEAD.anyTools + prompt.tools * OVERHEAD.tool
  for (const text of prompt.texts) {
    // Beyond the window nothing is read, so nothing has to be looked at.
    if (most >= contextWindow) return contextWindow
    most += OVERHEAD.text + bytesOf(text, contextWindow - most)
  }
  for (const structure of prompt.structures) {
    if (most >= contextWindow) return contextWindow
    most += OVERHEAD.text + bytesOfStructure(structure, contextWindow - most)
  }
  for (const kind of prompt.parts) most += OVERHEAD.part + (tokensOfPart(kind, partTokens) ?? contextWindow)
  return Math.min(contextWindow, most)
}

/** What a prompt usually comes to, within `most`: once it has that, nothing more is looked at. */
function typicalTokens(prompt: Prompt, limits: ModelLimits, most: number): number {
  const { image, audio, other } = typicalParts(prompt, limits)
  let tokens = prompt.declaredTokens + prompt.messages * TYPICAL_MESSAGE_TOKENS + image + audio + other
  for (const text of prompt.texts) {
    if (tokens >= most) return most
    tokens += estimateTokens(text)
  }
  for (const structure of prompt.structures) {
    if (tokens >= most) return most
    const bytes = bytesOfStructure(structure, LONG_STRUCTURE_BYTES)
    // To write a long one would take a long turn.
    tokens += bytes < LONG_STRUCTURE_BYTES ? estimateTokens(jsonOf(structure)) : bytes / TYPICAL_TOKEN_BYTES
  }
  return Math.min(most, Math.ceil(tokens))
}

/** Of those parts, by the class that a vendor would report them in. */
function typicalParts({ parts }: Prompt, { partTokens }: ModelLimits): InputParts {
  const typical = { image: 0, audio: 0, other: 0 }
  for (const kind of parts) {
    const name = kind === 'image' || kind === 'audio' ? kind : 'other'
    typical[name] += tokensOfPart(kind, partTokens) ?? TYPICAL_PART_TOKENS
  }
  return typical
}

function tokensOfPart(kind: PartKind | undefined, partTokens: ModelLimits['partTokens']): number | undefined {
  return kind === undefined ? undefined : partTokens[kind]
}

function jsonOf(structure: unknown): string {
  return JSON.stringify(structure) ?? ''
}

/** At least `enough` where it has that many; how many more does not matter then. */
export function bytesOf(text: string, enough = Number.POSITIVE_INFINITY): number {
  const bytes = Buffer.byteLength(text)
  // What is ASCII alone has no other form.
  if (bytes === text.length || bytes >= enough) return bytes
  let most = 0
  for (let at = 0; at < text.length && most < enough; ) {
    const next = endOfPiece(text, at)
    const piece = text.slice(at, next)
    const forms = [piece, piece.normalize('NFC'), piece.normalize('NFKC')]
    most += Math.max(...forms.map((form) => Buffer.byteLength(form)))
    at = next
  }
  return most
}

/** Never between the two halves of one character. */
function endOfPiece(text: string, start: number): number {
  const end = start + NORMALISED_AT_ONCE
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last < 0xdc00 ? end + 1 : end
}

/**
 * As JSON in ASCII with an indented line for each value, which is the longest form that an upstream may give it. At least `enough`
 * where it has that many, as above.
 */
export function bytesOfStructure(structure: unknown, enough = Number.POSITIVE_INFINITY): number {
  let bytes = 0
  const open: unknown[] = [structure]
  while (open.length > 0 && bytes < enough) {
    const value = open.pop()
    bytes += TOKENS_PER_NODE
    if (typeof value === 'string') bytes += bytesInAscii(value, enough - bytes)
    else if (Array.isArray(value)) {
      bytes += QUOTES
      for (const item of value) open.push(item)
    } else if (typeof value === 'object' && value !== null) {
      bytes += QUOTES
      for (const [name, member] of Object.entries(value)) {
        bytes += bytesInAscii(name)
        open.push(member)
      }
    } else bytes += String(value).length
  }
  return bytes
}

function bytesInAscii(text: string, enough = Number.POSITIVE_INFINITY): number {
  let bytes = QUOTES
  for (let at = 0; at < text.length && bytes < enough; at += 1) {
    const code = text.charCodeAt(at)
    if (code < 32 || code > 126) bytes += ESCAPED_BYTES
    else bytes += code === 34 || code === 92 ? 2 : 1
  }
  return bytes
}
