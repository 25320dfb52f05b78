import { isMap, isScalar, isSeq, Lexer, LineCounter, type Node, parseDocument, type Scalar } from 'yaml'
import { PriceListError } from './problems.ts'

/**
 * A file of YAML or JSON that may be hostile, as a tree of texts. Every number stays as it was written, so that none is ever
 * rounded, and every node knows its line.
 */
export type Tree = Leaf | Branch | Members
type Leaf = { readonly kind: 'text'; readonly line: number; readonly text: string | null }
type Branch = { readonly kind: 'list'; readonly line: number; readonly items: readonly Tree[] }
type Members = { readonly kind: 'members'; readonly line: number; readonly members: ReadonlyMap<string, Tree> }

/** Several times what the public list has. */
export const FILE_BYTES_MOST = 8 * 1024 * 1024
const DEPTH_MOST = 16
const NAME_MOST = 256
/** Names by which code reaches what every object has. */
const REFUSED_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
const NULLS: ReadonlySet<string> = new Set(['', '~', 'null', 'Null', 'NULL'])

/** Throws a PriceListError that says what is wrong and in which line. */
export function readTree(bytes: Uint8Array): Tree {
  if (bytes.length > FILE_BYTES_MOST)
    throw new PriceListError([`it has ${bytes.length} bytes; the limit is ${FILE_BYTES_MOST}: split it`])
  const lines = new LineCounter()
  // Names are compared below: the parser's own comparison takes quadratic time.
  const text = textOf(bytes)
  requireBounded(text)
  const document = parseDocument(text, {
    ...{ schema: 'failsafe', uniqueKeys: false, prettyErrors: false, logLevel: 'error' },
    lineCounter: lines,
  })
  const lineOf = (place: number | undefined) => lines.linePos(place ?? 0).line
  const faults = [...document.errors, ...document.warnings]
  if (faults.length > 0)
    throw new PriceListError(faults.map(({ code, message, pos }) => `line ${lineOf(pos[0])}: ${saying(code, message)}`))
  if (document.contents === null) throw new PriceListError(['it is empty'])
  return treeOf(document.contents, lineOf, 0)
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new PriceListError(['it is not UTF-8: save it as that'])
  }
}

/** The mark that the lexer puts before a scalar. */
const SCALAR = '\u001f'

/** What the parser takes a minute for. The public list has a fifth of it. */
const TOKENS_MOST = 2_000_000

/** The parser calls itself for each level, and takes quadratic time over many: its lexer does neither. */
function requireBounded(text: string): void {
  let [tokens, line, depth, ofLine, isInScalar] = [0, 1, 0, 0, false]
  for (const token of new Lexer().lex(text)) {
    if (isInScalar || token === SCALAR) isInScalar = !isInScalar
    else if (token === '[' || token === '{') depth += 1
    else if (token === ']' || token === '}') depth -= 1
    else if (token === '-' || token === '?') ofLine += 1
    else if (token.endsWith('\n')) [line, ofLine] = [line + 1, 0]
    tokens += 1
    if (tokens > TOKENS_MOST) throw new PriceListError([`line ${line}: it has too many members: split it`])
    if (depth + ofLine > DEPTH_MOST) throw new PriceListError([`line ${line}: ${TOO_DEEP}`])
  }
}

function saying(code: string, message: string): string {
  if (code === 'RESOURCE_EXHAUSTION') return TOO_DEEP
  return message.split('\n')[0] ?? code
}

const TOO_DEEP = `it is nested too deeply; the limit is ${DEPTH_MOST} levels`

type LineOf = (place: number | undefined) => number

function treeOf(node: unknown, lineOf: LineOf, depth: number, keyLine?: number): Tree {
  const line = keyLine ?? lineOf(isNode(node) ? node.range?.[0] : undefined)
  const refuse = (what: string) => new PriceListError([`line ${line}: ${what}`])
  if (depth > DEPTH_MOST) throw refuse(TOO_DEEP)
  if (node === null) return { kind: 'text', line, text: null }
  if (!isScalar(node) && !isSeq(node) && !isMap(node)) throw refuse('aliases (*name) are not taken: write it out')
  if (node.anchor !== undefined) throw refuse('anchors (&name) are not taken: write it out')
  if (node.tag !== undefined) throw refuse('tags (!name) are not taken: remove it')
  if (isScalar(node)) return { kind: 'text', line, text: writtenIn(node) }
  if (isSeq(node)) return { kind: 'list', line, items: node.items.map((item) => treeOf(item, lineOf, depth + 1)) }
  const members = new Map<string, Tree>()
  for (const { key, value } of node.items) {
    const at = isNode(key) ? lineOf(key.range?.[0]) : line
    const name = isScalar(key) && key.anchor === undefined && key.tag === undefined ? writtenIn(key) : null
    if (name === null || name.length > NAME_MOST) throw new PriceListError([`line ${at}: a name must be a short text`])
    if (REFUSED_NAMES.has(name)) throw new PriceListError([`line ${at}: the name ${name} is not allowed`])
    if (members.has(name))
      throw new PriceListError([`line ${at}: duplicate member ${JSON.stringify(name)}: keep one of them`])
    members.set(name, treeOf(value, lineOf, depth + 1, at))
  }
  return { kind: 'members', line, members }
}

function isNode(node: unknown): node is Node {
  return typeof node === 'object' && node !== null && 'range' in node
}

/** A plain scalar as it stands there; a quoted one without its quotes. */
function writtenIn({ type, source, value }: Scalar): string | null {
  const text = typeof value === 'string' ? value : (source ?? '')
  return type === 'PLAIN' && NULLS.has(text) ? null : text
}

/** The tree without its lines. */
export function plainValue(tree: Tree): unknown {
  if (tree.kind === 'text') return tree.text
  if (tree.kind === 'list') return tree.items.map(plainValue)
  return Object.fromEntries([...tree.members].map(([name, member]) => [name, plainValue(member)]))
}

/** The line of what is at this path, or of the last on the way there. */
export function lineAt(tree: Tree, path: readonly PropertyKey[]): number {
  const [name, ...rest] = path
  if (name === undefined || tree.kind === 'text') return tree.line
  const next = tree.kind === 'list' ? tree.items[Number(name)] : tree.members.get(String(name))
  return next === undefined ? tree.line : lineAt(next, rest)
}
