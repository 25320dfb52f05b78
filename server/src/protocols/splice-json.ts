import {
  afterSpace,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  endOfString,
  endOfValue,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-bytes.ts'

type Range = { readonly start: number; readonly end: number }

/**
 * Sets members of a JSON object in its bytes, by the JSON text of their values: in place where the member is there,
 * else at the object's end. Every other byte stays as it came. The bytes have been parsed before, so that they are valid
 * and no name stands twice.
 */
export function spliceJson(raw: Buffer, members: Readonly<Record<string, string>>): Buffer {
  const wanted = Object.entries(members)
  const object = readObject(raw, new Set(Object.keys(members)))
  const edits: (Range & { readonly text: string })[] = []
  let added = ''
  for (const [name, text] of wanted) {
    const range = object.members.get(name)
    if (range !== undefined) edits.push({ ...range, text })
    else added += `${added === '' && object.isEmpty ? '' : ','}${JSON.stringify(name)}:${text}`
  }
  edits.sort((one, other) => one.start - other.start)
  if (added !== '') edits.push({ start: object.end, end: object.end, text: added })
  return edited(raw, edits)
}

/** An object without some of its members. Every byte of the others stays as it came. */
export function withoutMembers(raw: Buffer, names: readonly string[]): Buffer {
  const { places, open } = readObject(raw, undefined)
  const edits: (Range & { readonly text: string })[] = []
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
  const edits: (Range & { readonly text: string })[] = []
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
  const range = readObject(raw, undefined).places.findLast((place) => place.name === name)
  return range && raw.subarray(range.start, range.end)
}

function edited(raw: Buffer, edits: readonly (Range & { readonly text: string })[]): Buffer {
  const pieces: Buffer[] = []
  let from = 0
  for (const { start, end, text } of edits) {
    pieces.push(raw.subarray(from, start), Buffer.from(text))
    from = end
  }
  return Buffer.concat([...pieces, raw.subarray(from)])
}

/** A member: where its name stands, and the range of its value. */
type Place = Range & { readonly name: string; readonly nameStart: number }
type Found = {
  readonly members: ReadonlyMap<string, Range>
  readonly isEmpty: boolean
  readonly end: number
  /** Every member that was read, in order, and where the first may begin. */
  readonly places: readonly Place[]
  readonly open: number
}

/**
 * Where the value of each wanted member stands. Where all are found, nothing more is read; else `end` is where the last one
 * ends. All are read where none is named.
 */
function readObject(raw: Buffer, wanted: ReadonlySet<string> | undefined): Found {
  const members = new Map<string, Range>()
  const places: Place[] = []
  let isEmpty = true
  let at = afterSpace(raw, 0)
  if (raw[at] !== OPEN_BRACE) throw new RangeError('The bytes are no JSON object.')
  let end = at + 1
  const open = end
  at = afterSpace(raw, end)
  while (raw[at] === QUOTE) {
    const afterName = endOfString(raw, at)
    const name = nameIn(raw.toString('utf8', at, afterName))
    // A colon stands between the name and its value.
    const start = afterSpace(raw, afterSpace(raw, afterName) + 1)
    end = endOfValue(raw, start)
    isEmpty = false
    places.push({ name, nameStart: at, start, end })
    if (wanted?.has(name)) members.set(name, { start, end })
    if (members.size === wanted?.size) return { members, isEmpty, end, places, open }
    at = afterSpace(raw, end)
    if (raw[at] === COMMA) at = afterSpace(raw, at + 1)
  }
  if (raw[at] !== CLOSE_BRACE) throw new RangeError('The bytes are no JSON object.')
  return { members, isEmpty, end, places, open }
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
