import { memberOf } from '../catalogue/price.ts'
import { wordsIn } from './generated-text.ts'
import { ENDED_BY, type LimitEnding, MOST_KEPT_BYTES, type Passage, typedFrame } from './limit-end.ts'
import { isMembers } from './members.ts'
import { COST } from './usage.ts'

type Members = Readonly<Record<string, unknown>>

/** A part of an item that is open, how its kind ends, and where its text starts. */
type OpenPart = { readonly part: Members; readonly kind: PartKind; readonly index: unknown; readonly from: number }

type PartKind = {
  /** The event that tells its text, and the member of it and of the part that has the text. */
  readonly told: string
  readonly text: string
  /** The event that ends it, and the member that has its place. */
  readonly done: string
  readonly place: string
  readonly beside?: Members
}

const IN_CONTENT = { text: 'text', done: 'response.content_part.done', place: 'content_index' } as const
const PART_KINDS: ReadonlyMap<unknown, PartKind> = new Map<unknown, PartKind>(
  Object.entries({
    output_text: { ...IN_CONTENT, told: 'response.output_text.done', beside: { logprobs: [] } },
    refusal: { ...IN_CONTENT, told: 'response.refusal.done', text: 'refusal' },
    reasoning_text: { ...IN_CONTENT, told: 'response.reasoning_text.done' },
    summary_text: {
      told: 'response.reasoning_summary_text.done',
      text: 'text',
      done: 'response.reasoning_summary_part.done',
      place: 'summary_index',
    },
  }),
)

/** An item that is open: its text starts where the item does, unless it has parts. */
type OpenItem = { readonly item: Members; readonly from: number; readonly parts: unknown[]; open: OpenPart | undefined }

/**
 * The end of what is open, each with the text that has come of it, then response.incomplete with all items and the usage. Deltas say nothing
 * but their text, and items come one after the other, so that the text of each is what came between its start and the next one's.
 */
export function createResponseEnding(): LimitEnding {
  let response: Members = {}
  const done = new Map<unknown, unknown>()
  const open = new Map<unknown, OpenItem>()
  let keptBytes = 0
  /** The last number that was seen, and of which frame. Plain frames have one each, too. */
  let numbered = { number: -1, atFrame: -1 }

  function itemEvent(json: unknown, kind: unknown, textBytes: number): void {
    const index = memberOf(json, 'output_index')
    const item = memberOf(json, 'item')
    if (kind === 'response.output_item.added' && isMembers(item))
      open.set(index, { item, from: textBytes, parts: [], open: undefined })
    if (kind === 'response.output_item.done') {
      open.delete(index)
      done.set(index, item)
    }
  }

  function partEvent(json: unknown, kind: unknown, textBytes: number): void {
    const item = open.get(memberOf(json, 'output_index'))
    const part = memberOf(json, 'part')
    if (item === undefined) return
    const partKind = PART_KINDS.get(memberOf(part, 'type'))
    if (isMembers(part) && partKind !== undefined && /part\.added$/.test(String(kind)))
      item.open = { part, kind: partKind, index: memberOf(json, partKind.place), from: textBytes }
    if (/part\.done$/.test(String(kind))) {
      item.parts.push(part)
      item.open = undefined
    }
  }

  /** What has ended is not ended again, also where nothing of it is kept. */
  function forget(json: unknown, kind: string): void {
    const index = memberOf(json, 'output_index')
    const item = open.get(index)
    if (item !== undefined && /part\.done$/.test(kind)) item.open = undefined
    if (kind === 'response.output_item.done') open.delete(index)
  }

  return {
    keptBytes: () => keptBytes,

    passed(json, { textBytes, frames }, bytes) {
      const kind = memberOf(json, 'type')
      const number = memberOf(json, 'sequence_number')
      if (typeof number === 'number') numbered = { number, atFrame: frames }
      const begun = memberOf(json, 'response')
      // What would take too much is not told again: a cut response says less of what it was, and is one all the same.
      if (keptBytes + bytes > MOST_KEPT_BYTES) {
        forget(json, String(kind))
        return
      }
      keptBytes += bytes
      if (isMembers(begun)) response = begun
      itemEvent(json, kind, textBytes)
      partEvent(json, kind, textBytes)
    },

    frames({ cost, endedBy, usage }, passage, text) {
      let number = numbered.number + passage.frames - numbered.atFrame - 1
      const frame = (type: string, members: Members) => {
        number += 1
        return typedFrame({ type, ...members, sequence_number: number })
      }
      const ends = [...open].map(([index, item]) => {
        const { frames, ended } = endOfItem(item, index, passage, text, frame)
        done.set(index, ended)
        return frames
      })
      const output = [...done].toSorted(([one], [other]) => Number(one) - Number(other)).map(([, item]) => item)
      const incomplete = {
        ...response,
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        [ENDED_BY]: endedBy,
        output,
        usage: usageOf(usage, cost),
      }
      return [...ends, frame('response.incomplete', { response: incomplete })].join('')
    },
  }
}

type Framed = (type: string, members: Members) => string

function endOfItem(
  { item, from, parts, open }: OpenItem,
  index: unknown,
  { textBytes }: Passage,
  text: (from: number, to: number) => string,
  frame: Framed,
): { readonly frames: string; readonly ended: Members } {
  const place = { item_id: memberOf(item, 'id'), output_index: index }
  let frames = ''
  const content = [...parts]
  if (open !== undefined) {
    const { kind } = open
    const inside = { ...place, [kind.place]: open.index }
    const written = { [kind.text]: text(open.from, textBytes) }
    const part = { ...open.part, ...written }
    frames += frame(kind.told, { ...inside, ...written, ...kind.beside })
    frames += frame(kind.done, { ...inside, part })
    content.push(part)
  }
  const ended = { ...item, ...writtenIn(item, content, () => text(from, textBytes)), status: 'incomplete' }
  return { frames: frames + frame('response.output_item.done', { output_index: index, item: ended }), ended }
}

/** A message has its parts, and so has what was thought; a call of a function has its arguments, behind its name. */
function writtenIn(item: Members, content: readonly unknown[], text: () => string): Members {
  switch (memberOf(item, 'type')) {
    case 'message':
      return { content }
    case 'reasoning':
      return content.length === 0 ? {} : reasoningOf(content)
    case 'function_call':
      return { arguments: text().slice(wordsIn(memberOf(item, 'name')).length) }
    case 'custom_tool_call':
      return { input: text().slice(wordsIn(memberOf(item, 'name')).length) }
    default:
      return {}
  }
}

function reasoningOf(parts: readonly unknown[]): Members {
  const isSummary = (part: unknown) => memberOf(part, 'type') === 'summary_text'
  const content = parts.filter((part) => !isSummary(part))
  return { summary: parts.filter(isSummary), ...(content.length > 0 && { content }) }
}

function usageOf(
  { input, output, cacheRead, cacheWrite }: Parameters<LimitEnding['frames']>[0]['usage'],
  cost: string,
): Members {
  const read = input + cacheRead + cacheWrite
  return {
    input_tokens: read,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: read + output,
    [COST]: cost,
  }
}
