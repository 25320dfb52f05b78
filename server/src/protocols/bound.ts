import { estimateTokens } from './estimate.ts'
import type { ModelAsk, ModelLimits, PartKind } from './protocol.ts'

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

/** What is known of the input before a model has read it, and its text, to be counted afterwards. */
export function inputOf(
  prompt: Prompt,
  limits: ModelLimits,
): Pick<ModelAsk, 'inputMost' | 'inputEstimate' | 'inputText' | 'partsMost'> {
  const once = mostTokens(prompt, limits)
  const inputMost = prompt.hosted === undefined ? once : mostOfRounds(once, prompt.hosted, limits)
  return {
    inputMost,
    ...(prompt.parts.length > 0 && { partsMost: partsMostOf(prompt, limits) }),
    inputEstimate: Math.min(inputMost, typicalTokens(prompt, limits)),
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
  let most = OVERHEAD.request + prompt.declaredTokens + bytesOfStructure(prompt.others)
  most += prompt.messages * OVERHEAD.message
  if (prompt.tools > 0) most += OVERHEAD.anyTools + prompt.tools * OVERHEAD.tool
  for (const text of prompt.texts) {
    // Beyond the window nothing is read, so nothing has to be looked at.
    if (most >= contextWindow) return contextWindow
    most += OVERHEAD.text + bytesOf(text, contextWindow - most)
  }
  for (const structure of prompt.structures) most += OVERHEAD.text + bytesOfStructure(structure)
  for (const kind of prompt.parts) most += OVERHEAD.part + (tokensOfPart(kind, partTokens) ?? contextWindow)
  return Math.min(contextWindow, most)
}

/** What a prompt usually comes to. */
function typicalTokens(prompt: Prompt, { partTokens }: ModelLimits): number {
  let tokens = prompt.declaredTokens + prompt.messages * TYPICAL_MESSAGE_TOKENS
  for (const text of prompt.texts) tokens += estimateTokens(text)
  for (const structure of prompt.structures) tokens += estimateTokens(jsonOf(structure))
  for (const kind of prompt.parts) tokens += tokensOfPart(kind, partTokens) ?? TYPICAL_PART_TOKENS
  return tokens
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

/** As JSON in ASCII with an indented line for each value, which is the longest form that an upstream may give it. */
export function bytesOfStructure(structure: unknown): number {
  let bytes = 0
  const open: unknown[] = [structure]
  while (open.length > 0) {
    const value = open.pop()
    bytes += TOKENS_PER_NODE
    if (typeof value === 'string') bytes += bytesInAscii(value)
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

function bytesInAscii(text: string): number {
  let bytes = QUOTES
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code < 32 || code > 126) bytes += ESCAPED_BYTES
    else bytes += code === 34 || code === 92 ? 2 : 1
  }
  return bytes
}
