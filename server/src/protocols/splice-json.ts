import {
  ASCII_END,
  afterSpace,
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  endOfString,
  endOfValue,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-bytes.ts'

export type Range = { readonly start: number; readonly end: number }
/** What is to stand in place of a range of bytes. Those of a list are in order and apart. */
export type Edit = Range & { readonly text: string }

/**
 * Sets members of a JSON object in its bytes, by the JSON text of their values: in place where the member is there,
 * else at the object's end. Every other byte stays as it came. The bytes have been parsed before, so that they are valid
 * and no name stands twice.
 */
export function spliceJson(raw: Buffer, members: Readonly<Record<string, string>>): Buffer {
  const names = Object.keys(members)
  const object = readObject(raw, names, names.length)
  const edits: Edit[] = []
  let added = ''
  for (const [at, name] of names.entries()) {
    const range = object.found[at]
    const text = members[name] ?? ''
    if (range !== undefined) edits.push({ start: range.start, end: range.end, text })
    else added += `${added === '' && object.isEmpty ? '' : ','}${JSON.stringify(name)}:${text}`
  }
  edits.sort((one, other) => one.start - other.start)
  if (added !== '') edits.push({ start: object.end, end: object.end, text: added })
  return edited(raw, edits)
}

/** An object without some of its members. Every byte of the others stays as it came. */
export function withoutMembers(raw: Buffer, names: readonly string[]): Buffer {
  const { places, open } = placesIn(raw)
  const edits: Edit[] = []
  let keptEnd = open
  for (const [at, { name, nameStart, end }] of places.entries()) {
    const next = places[at + 1]
    if (!names.includes(name)) keptEnd = end
    // With the comma after it; where nothing follows that stays, with the one before it.
    else if (places.slice(at + 1).some((later) => !names.includes(later.name)))
      edits.push({ start: nameStart, end: next?.nameStart ?? end, text: '' })
    else {
      edits.push({ start: keptEnd, end: places.at(-1)?.end ?? end, text: '' })
      break
    }
  }
  return edited(raw, edits)
}

/** A JSON array with its items changed, each by its bytes. The array itself is given where none is. */
export function spliceItems(raw: Buffer, change: (item: Buffer, at: number) => Buffer): Buffer {
  const edits: Edit[] = []
  let count = 0
  let at = afterSpace(raw, 0)
  if (raw[at] !== OPEN_BRACKET) throw new RangeError('The bytes are no JSON array.')
  at = afterSpace(raw, at + 1)
  while (at < raw.length && raw[at] !== CLOSE_BRACKET) {
    const end = endOfValue(raw, at)
    const item = raw.subarray(at, end)
    const changed = change(item, count)
    if (changed !== item) edits.push({ start: at, end, text: changed.toString() })
    count += 1
    at = afterSpace(raw, end)
    if (raw[at] === COMMA) at = afterSpace(raw, at + 1)
  }
  return edits.length === 0 ? raw : edited(raw, edits)
}

/** The bytes of a member's value, of the last that has the name, as parsers read it. Undefined where there is no such member. */
export function memberIn(raw: Buffer, name: string): Buffer | undefined {
  const [range] = rangesIn(raw, [name])
  return range && raw.subarray(range.start, range.end)
}

/** Where the values of members stand, each of the last that has the name, as parsers read it. */
export function rangesIn(raw: Buffer, names: readonly string[]): readonly (Range | undefined)[] {
  return readObject(raw, names, Number.POSITIVE_INFINITY).found
}

/** Bytes with other text in some places. */
export function edited(raw: Buffer, edits: readonly Edit[]): Buffer {
  let length = raw.length
  for (const { start, end, text } of edits) length += Buffer.byteLength(text) - (end - start)
  const bytes = Buffer.allocUnsafe(length)
  let from = 0
  let at = 0
  for (const { start, end, text } of edits) {
    at += raw.copy(bytes, at, from, start)
    at += bytes.write(text, at)
    from = end
  }
  raw.copy(bytes, at, from)
  return bytes
}

type Found = {
  /** Where the value of each name stands that was looked for. */
  readonly found: readonly (Range | undefined)[]
  readonly isEmpty: boolean
  readonly end: number
}

/**
 * Where the values of named members stand. Where `enough` are found nothing more is read; else `end` is where the last member
 * ends. Every call passes through here with each of its bodies: a name becomes a string only where its bytes do not decide.
 */
function readObject(raw: Buffer, names: readonly string[], enough: number): Found {
  const found: (Range | undefined)[] = names.map(() => undefined)
  let count = 0
  let end = opening(raw)
  let isEmpty = true
  let at = afterSpace(raw, end)
  while (raw[at] === QUOTE) {
    const afterName = endOfString(raw, at)
    const start = startOfValue(raw, afterName)
    end = endOfValue(raw, start)
    isEmpty = false
    const which = indexOfName(raw, at, afterName, names)
    if (which !== -1) {
      found[which] = { start, end }
      count += 1
      if (count === enough) return { found, isEmpty, end }
    }
    at = afterSpace(raw, end)
    if (raw[at] === COMMA) at = afterSpace(raw, at + 1)
  }
  requireClosed(raw, at)
  return { found, isEmpty, end }
}

/** A member: where its name stands, and the range of its value. */
type Place = Range & { readonly name: string; readonly nameStart: number }

/** Every member in order, and where the first may begin. */
function placesIn(raw: Buffer): { readonly places: readonly Place[]; readonly open: number } {
  const places: Place[] = []
  const open = opening(raw)
  let at = afterSpace(raw, open)
  while (raw[at] === QUOTE) {
    const nameStart = at
    const afterName = endOfString(raw, at)
    const start = startOfValue(raw, afterName)
    const end = endOfValue(raw, start)
    places.push({ name: nameIn(raw.toString('utf8', nameStart, afterName)), nameStart, start, end })
    at = afterSpace(raw, end)
    if (raw[at] === COMMA) at = afterSpace(raw, at + 1)
  }
  requireClosed(raw, at)
  return { places, open }
}

/** The place after the brace that opens the object. */
function opening(raw: Buffer): number {
  const at = afterSpace(raw, 0)
  if (raw[at] !== OPEN_BRACE) throw new RangeError('The bytes are no JSON object.')
  return at + 1
}

function requireClosed(raw: Buffer, at: number): void {
  if (raw[at] !== CLOSE_BRACE) throw new RangeError('The bytes are no JSON object.')
}

/** A colon stands between the name and its value. */
function startOfValue(raw: Buffer, afterName: number): number {
  return afterSpace(raw, afterSpace(raw, afterName) + 1)
}

/** Which of some names stands between the quotes; -1 where it is none. */
function indexOfName(raw: Buffer, start: number, end: number, names: readonly string[]): number {
  for (let at = start + 1; at < end - 1; at += 1) {
    const code = raw[at] ?? 0
    // Letters in several bytes, or escaped.
    if (code === BACKSLASH || code >= ASCII_END) return names.indexOf(nameIn(raw.toString('utf8', start, end)))
  }
  for (let which = 0; which < names.length; which += 1)
    if (isAt(raw, start + 1, end - 1, names[which] ?? '')) return which
  return -1
}

function isAt(raw: Buffer, start: number, end: number, name: string): boolean {
  if (name.length !== end - start) return false
  for (let at = 0; at < name.length; at += 1) if (raw[start + at] !== name.charCodeAt(at)) return false
  return true
}

/** What stands between the quotes, where nothing in it is escaped. */
function nameIn(quoted: string): string {
  return quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1)
}

/** The body of a request that names its model, with the upstream's name for it. */
export function withModel(rawBody: Buffer, model: string, upstreamModel: string): Buffer {
  return upstreamModel === model ? rawBody : spliceJson(rawBody, { model: JSON.stringify(upstreamModel) })
}

/** An object with its output limit as the one member that its upstream reads, and without the others. */
export function withOnlyLimit(
  object: Buffer,
  members: Readonly<Record<string, unknown>>,
  { name, among, limit }: { readonly name: string; readonly among: readonly string[]; readonly limit: number },
): Buffer {
  const others = among.filter((one) => one !== name && Object.hasOwn(members, one))
  const alone = others.length === 0 ? object : withoutMembers(object, others)
  return members[name] === limit ? alone : spliceJson(alone, { [name]: String(limit) })
}
