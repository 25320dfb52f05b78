/**
 * Reads of a large JSON text what is there to be metered: every member of the outermost object, and of what is deeper the
 * beginning. Of lists of numbers a zero is left, which says that there were some, and of long strings and lists the beginning, so
 * that 54 MiB of vectors become some kilobytes, and never a tree of numbers.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE, SPACE } from './json-bytes.ts'
import { jsonIn } from './json-text.ts'

const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39

export type OutlineLimits = {
  /** Of lists and objects all but numbers is kept until it is so much. */
  readonly keptBytes: number
  /** Of strings, until it is so much: less, so that what has long strings in it is counted all the same. */
  readonly textBytes: number
  /** A member of the outermost object that is shorter is kept whole even then: one of them is the usage. */
  readonly memberBytes: number
  /** A list of numbers that is shorter stays as it is. */
  readonly numbersBytes: number
  /** A string that is shorter is kept even then. */
  readonly stringBytes: number
  /** Where more than this is left of it, it is not read. */
  readonly mostBytes: number
  /** Nor where it is nested more deeply: to parse that takes many times as long. */
  readonly depth: number
  /** So many steps are done in one turn of the event loop, of some ten nanoseconds each. */
  readonly turnSteps: number
}

const LIMITS: OutlineLimits = {
  keptBytes: 786_432,
  textBytes: 524_288,
  memberBytes: 4_096,
  numbersBytes: 64,
  stringBytes: 256,
  mostBytes: 1_048_576,
  depth: 512,
  turnSteps: 200_000,
}
/** A string that was shortened is not empty, whatever was kept of it. */
const END_OF_STRING = Buffer.from('…"')
/** Nor is a list of numbers. */
const SOME_NUMBER = Buffer.from('0')
/** As in \u00e9. */
const ESCAPE_BYTES = 6

/** Undefined where it is no JSON. What is in a list of numbers is not looked at. */
export async function readOutline(bytes: Buffer, limits: OutlineLimits = LIMITS): Promise<unknown> {
  const outline = new Outline(bytes, limits)
  while (outline.advance()) await nextTurn()
  const text = outline.text()
  return text === undefined ? undefined : jsonIn(text)
}

class Outline {
  readonly #bytes: Buffer
  readonly #limits: OutlineLimits
  readonly #kept: Buffer[] = []
  #keptBytes = 0
  /** From here on nothing has been kept or left out yet. */
  #from = 0
  #at = 0
  /** Where the string begins that is being read; -1 between strings. */
  #stringAt = -1
  #depth = 0
  /** Where the member of the outermost object begins that is being read. */
  #memberAt = 0
  /** How deep the list or object is of which the rest is being left out; 0 where none is. */
  #leftOutDepth = 0
  readonly #quotes: Finder
  readonly #backslashes: Finder
  readonly #openBraces: Finder
  readonly #openBrackets: Finder
  readonly #closeBrackets: Finder

  constructor(bytes: Buffer, limits: OutlineLimits) {
    this.#bytes = bytes
    this.#limits = limits
    this.#quotes = new Finder(bytes, QUOTE)
    this.#backslashes = new Finder(bytes, BACKSLASH)
    this.#openBraces = new Finder(bytes, OPEN_BRACE)
    this.#openBrackets = new Finder(bytes, OPEN_BRACKET)
    this.#closeBrackets = new Finder(bytes, CLOSE_BRACKET)
  }

  /** Does the steps of one turn. False when nothing is left to do. */
  advance(): boolean {
    const { length } = this.#bytes
    for (let steps = this.#limits.turnSteps; steps > 0; steps -= 1) {
      if (this.#at >= length || this.#isTooMuch()) return false
      if (this.#stringAt === -1) this.#step()
      else this.#stepInString()
    }
    return true
  }

  text(): string | undefined {
    if (this.#stringAt !== -1 || this.#leftOutDepth !== 0 || this.#isTooMuch()) return undefined
    this.#keepTo(this.#bytes.length)
    return Buffer.concat(this.#kept).toString('utf8')
  }

  #step(): void {
    const code = this.#bytes[this.#at]
    if (code === QUOTE) this.#stringAt = this.#at
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) this.#open(code)
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) this.#close()
    else if (code === COMMA && this.#depth < 2) this.#memberAt = this.#at
    else if (code === COMMA) this.#leaveOutRest()
    this.#at += 1
  }

  #open(code: number): void {
    this.#depth += 1
    if (code === OPEN_BRACKET) this.#leaveOutNumbers()
  }

  #close(): void {
    if (this.#leftOutDepth === this.#depth) {
      this.#leftOutDepth = 0
      this.#from = this.#at
    }
    this.#depth -= 1
  }

  /** At a comma below the outermost: where enough has been kept, what follows in the list or object is not. */
  #leaveOutRest(): void {
    if (this.#leftOutDepth !== 0 || this.#pendingBytes() <= this.#limits.keptBytes) return
    if (this.#at - this.#memberAt <= this.#limits.memberBytes) return
    this.#keepTo(this.#at)
    this.#leftOutDepth = this.#depth
  }

  #stepInString(): void {
    const quote = this.#quotes.next(this.#at)
    const backslash = this.#backslashes.next(this.#at)
    if (backslash < quote) {
      this.#at = backslash + 2
      return
    }
    this.#at = Math.min(quote + 1, this.#bytes.length)
    const length = this.#at - this.#stringAt
    const excess = this.#pendingBytes() - this.#limits.textBytes
    if (length > this.#limits.stringBytes && excess > 0 && this.#leftOutDepth === 0) this.#shorten(length - excess)
    this.#stringAt = -1
  }

  /** Keeps about so many bytes of the string that has just ended. */
  #shorten(bytes: number): void {
    const start = this.#stringAt
    let end = start + Math.max(1, bytes)
    // Neither a character nor an escape is cut in two.
    for (let at = end; at > start && at > end - ESCAPE_BYTES; at -= 1)
      if (this.#bytes[at - 1] === BACKSLASH) end = at - 1
    while (end > start + 1 && (this.#bytes[end - 1] === BACKSLASH || isContinued(this.#bytes[end]))) end -= 1
    this.#keepTo(Math.max(start + 1, end))
    this.#keep(END_OF_STRING)
    this.#from = this.#at
  }

  /** At the bracket of a list: goes to its end where it has nothing but numbers. */
  #leaveOutNumbers(): void {
    if (this.#leftOutDepth !== 0) return
    let start = this.#at + 1
    // Some vendors write every number in a line of its own, after spaces.
    while ((this.#bytes[start] ?? NINE) <= SPACE) start += 1
    if (!isInNumber(this.#bytes[start])) return
    const end = this.#closeBrackets.next(start)
    if (end === this.#bytes.length || end - start < this.#limits.numbersBytes) return
    if (this.#quotes.next(start) < end || this.#openBraces.next(start) < end || this.#openBrackets.next(start) < end)
      return
    this.#keepTo(start)
    this.#keep(SOME_NUMBER)
    this.#from = end
    // The bracket that ends it comes next.
    this.#at = end - 1
  }

  #pendingBytes(): number {
    return this.#keptBytes + (this.#leftOutDepth === 0 ? this.#at - this.#from : 0)
  }

  #isTooMuch(): boolean {
    // Inside a string it is not known yet whether it stays.
    if (this.#stringAt !== -1) return false
    return this.#depth > this.#limits.depth || this.#pendingBytes() > this.#limits.mostBytes
  }

  #keepTo(end: number): void {
    if (end > this.#from) this.#keep(this.#bytes.subarray(this.#from, end))
    this.#from = end
  }

  #keep(bytes: Buffer): void {
    this.#kept.push(bytes)
    this.#keptBytes += bytes.length
  }
}

/** Whether a byte goes on with a character of UTF-8 that began before it. */
function isContinued(code: number | undefined): boolean {
  return code !== undefined && (code & 0xc0) === 0x80
}

function isInNumber(code: number | undefined): boolean {
  return code === MINUS || (code !== undefined && code >= ZERO && code <= NINE)
}

/** Finds the next place of a byte. Places are asked for from start to end, so that no byte is looked at twice. */
class Finder {
  readonly #bytes: Buffer
  readonly #code: number
  #found = -1

  constructor(bytes: Buffer, code: number) {
    this.#bytes = bytes
    this.#code = code
  }

  /** The end of the bytes where there is none. */
  next(from: number): number {
    if (this.#found < from) {
      const found = this.#bytes.indexOf(this.#code, from)
      this.#found = found === -1 ? this.#bytes.length : found
    }
    return this.#found
  }
}
