import { memberOf } from '../catalogue/price.ts'
import { wordsIn } from './generated-text.ts'
import { ENDED_BY, type LimitEnding, MOST_KEPT_BYTES, type Passage, typedFrame } from './limit-end.ts'
import { isMembers } from './members.ts'
import { COST } from './usage.ts'

type Members = Readonly<Record<string, unknown>>

/** A part of an item that is open, and where its text starts. */
type OpenPart = { readonly part: Members; readonly index: unknown; readonly from: number }

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
    if (isMembers(part) && typeof kind === 'string' && /part\.added$/.test(kind))
      item.open = { part, index: memberOf(json, 'content_index') ?? memberOf(json, 'summary_index'), from: textBytes }
    if (kind === 'response.content_part.done') {
      item.parts.push(part)
      item.open = undefined
    }
  }

  return {
    keptBytes: () => keptBytes,

    passed(json, { textBytes, frames }, bytes) {
      const kind = memberOf(json, 'type')
      const number = memberOf(json, 'sequence_number')
      if (typeof number === 'number') numbered = { number, atFrame: frames }
      const begun = memberOf(json, 'response')
      // What would take too much is not told again: a cut response says less of what it was, and is one all the same.
      if (keptBytes + bytes > MOST_KEPT_BYTES) return
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
    const written = text(open.from, textBytes)
    const inside = { ...place, content_index: open.index }
    const name = memberOf(open.part, 'type') === 'refusal' ? 'refusal' : 'text'
    const part = { ...open.part, [name]: written }
    if (memberOf(open.part, 'type') === 'output_text')
      frames += frame('response.output_text.done', { ...inside, text: written, logprobs: [] })
    frames += frame('response.content_part.done', { ...inside, part })
    content.push(part)
  }
  const ended = { ...item, ...writtenIn(item, content, () => text(from, textBytes)), status: 'incomplete' }
  return { frames: frames + frame('response.output_item.done', { output_index: index, item: ended }), ended }
}

/** A message has its parts; a call of a function has its arguments, behind its name. */
function writtenIn(item: Members, content: readonly unknown[], text: () => string): Members {
  switch (memberOf(item, 'type')) {
    case 'message':
      return { content }
    case 'function_call':
      return { arguments: text().slice(wordsIn(memberOf(item, 'name')).length) }
    case 'custom_tool_call':
      return { input: text().slice(wordsIn(memberOf(item, 'name')).length) }
    default:
      return {}
  }
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
