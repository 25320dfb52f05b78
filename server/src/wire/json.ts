import { isUtf8 } from 'node:buffer'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import { plainName } from '../kernel/plain-name.ts'

const QUOTE = 34
const COMMA = 44
const COLON = 58
const OPEN_BRACKET = 91
const BACKSLASH = 92
const CLOSE_BRACKET = 93
const OPEN_BRACE = 123
const CLOSE_BRACE = 125

export type JsonLimits = {
  readonly jsonDepth: number
  /** Names and containers in all: they are what costs time, a megabyte of them a tenth of a second. */
  readonly jsonNodes: number
  /** Values of all lists and objects: no more than a mebibyte can have, however large the body is. */
  readonly jsonValues: number
}

/**
 * Parses a body that may be hostile: in UTF-8, within its limits, with no name twice in one object and no name that
 * could reach a prototype. A name given twice is refused because the bytes may go on to an upstream that takes the
 * first where we have priced the last.
 */
export function parseJson(bytes: Buffer, limits: JsonLimits): unknown {
  if (!isUtf8(bytes))
    throw new Fault('invalid_json', { detail: 'The body is not UTF-8. Encode it as UTF-8 and send it again.' })
  const text = bytes.toString('utf8')
  const nameCount = scan(text, limits)
  const value = parse(text)
  if (inspect(value) !== nameCount)
    throw new Fault('invalid_json', { detail: `Duplicate JSON key ${duplicateIn(text)}.` })
  return value
}

/** Counts the names of all objects, and refuses what is too deep or too much before it is built. Nothing recurses. */
function scan(text: string, { jsonDepth, jsonNodes, jsonValues }: JsonLimits): number {
  let depth = 0
  let names = 0
  let containers = 0
  let commas = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = endOfString(text, at)
    } else if (code === COLON) {
      names += 1
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      containers += 1
      depth += 1
      if (depth > jsonDepth)
        throw new Fault('body_too_deep', {
          detail: `The JSON body is nested too deeply: the limit is ${jsonDepth} levels. Flatten it.`,
        })
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1
    } else if (code === COMMA) {
      commas += 1
    } else if (isInNumber(code)) {
      at = endOfNumber(text, at)
    }
  }
  if (commas > jsonValues) {
    throw invalidRequest(`The body has too many values: the limit is ${jsonValues}. Send fewer.`)
  }
  if (names + containers > jsonNodes) {
    throw invalidRequest(`The body has too many keys, objects and arrays: the limit is ${jsonNodes}. Send fewer.`)
  }
  return names
}

/** The first name that stands twice in one object. The text is valid, and there is one. */
function duplicateIn(text: string): string {
  const open: (Set<string> | undefined)[] = []
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === OPEN_BRACE) open.push(new Set())
    else if (code === OPEN_BRACKET) open.push(undefined)
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) open.pop()
    else if (code === QUOTE) {
      const end = endOfString(text, at)
      const names = isBeforeColon(text, end + 1) ? open.at(-1) : undefined
      const name = names === undefined ? '' : String(JSON.parse(text.slice(at, end + 1)))
      if (names?.has(name)) return `"${plainName(name)}"`
      names?.add(name)
      at = end
    }
  }
  return 'in one object'
}

function isBeforeColon(text: string, start: number): boolean {
  let at = start
  while (' \t\r\n'.includes(text[at] ?? ':')) at += 1
  return text.charCodeAt(at) === COLON
}

const NUMBER_LENGTH = 32
const isInNumber = (code: number) => (code >= 48 && code <= 57) || code === 45

/** Some readers keep every digit where we would read infinity, so that a number could be as long as a text. */
function endOfNumber(text: string, start: number): number {
  let end = start
  while (isInNumber(text.charCodeAt(end + 1)) || '.eE+'.includes(text[end + 1] ?? ' ')) end += 1
  if (end - start < NUMBER_LENGTH) return end
  throw invalidRequest(
    `A number is too long: the limit is ${NUMBER_LENGTH} characters. Shorten it, or send it as a string.`,
  )
}

/** The place of the quote that ends the string that begins at `start`, or of the text's end where there is none. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end === -1 ? text.length : end
}

function isEscaped(text: string, at: number): boolean {
  let before = at - 1
  while (text.charCodeAt(before) === BACKSLASH) before -= 1
  return (at - before) % 2 === 0
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the body, which may hold anything; it is neither told nor kept.
    throw new Fault('invalid_json')
  }
}

/** Counts the names that came through, and refuses those that would reach a prototype in a careless merge. */
function inspect(root: unknown): number {
  let names = 0
  const open: Node[] = []
  if (isNode(root)) open.push(root)
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (Array.isArray(node)) {
      for (const item of node) if (isNode(item)) open.push(item)
      continue
    }
    // What JSON.parse makes has no enumerable name but its own.
    for (const name in node) {
      names += 1
      const value = node[name]
      if (isPoison(name, value)) throw invalidRequest(`The JSON key "${name}" is not allowed. Remove it.`)
      if (isNode(value)) open.push(value)
    }
  }
  return names
}

type Node = unknown[] | Record<string, unknown>

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null
}

function isPoison(name: string, value: unknown): boolean {
  return name === '__proto__' || (name === 'constructor' && isNode(value) && Object.hasOwn(value, 'prototype'))
}
