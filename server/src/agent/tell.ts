import { retryAfterSecondsOf } from '../http/retry-after.ts'
import { Fault } from '../kernel/fault.ts'
import { formatUsd, type Nanos, wholeMicros, ZERO } from '../kernel/money.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import { readExactly } from './exact-numbers.ts'
import { cutPictures, mayHavePictures, type Room, takePictures } from './pictures.ts'
import { type Content, text } from './tool-result.ts'
import type { Used } from './use.ts'

/** What the key has left, as far as it is known. */
export type Left = {
  readonly balance: Nanos | undefined
  readonly budget: { readonly left: Nanos; readonly period: string } | undefined
}

/** What came of a call, for programs and as words. */
export type Told = {
  readonly structured: Readonly<Record<string, unknown>>
  readonly content: readonly Content[]
  readonly isError: boolean
}

/** The largest body that is looked at. Beyond that only its size is told. */
const MOST_BYTES = 16 * 1_048_576
/** The largest that is read as JSON while everybody else waits. Of a larger one there is no room for more than its beginning. */
const READ_BYTES = 1_048_576

/** The money of a call, in the members that `_meta` and the result have alike. */
export function moneyOf({ id, cost, held, atMost, taskCost }: Used, left: Left) {
  return {
    request_id: id,
    ...(cost !== undefined && { cost_usd: formatUsd(cost), cost_micros_usd: Number(wholeMicros(cost)) }),
    ...(held !== undefined && { held_usd: formatUsd(held) }),
    ...(taskCost !== undefined && { task_cost_usd: formatUsd(taskCost) }),
    ...(atMost !== undefined && { cost_at_most_usd: formatUsd(atMost) }),
    ...((left.balance ?? left.budget) !== undefined && {
      left: {
        ...(left.balance !== undefined && { balance_usd: formatUsd(left.balance) }),
        ...(left.budget !== undefined && {
          budget_usd: formatUsd(left.budget.left),
          budget_period: left.budget.period,
        }),
      },
    }),
  }
}

/** What was paid for is told, whatever its answer is made of. */
export function tell(used: Used, left: Left, room: Room): Told {
  try {
    return tellWhole(used, left, room)
  } catch (cause) {
    const { answer, ...rest } = used
    return tellWhole({ ...rest, fault: new Fault('internal_error', { cause }) }, left, room)
  }
}

function tellWhole(used: Used, left: Left, room: Room): Told {
  const { operationId, answer, fault } = used
  const money = moneyOf(used, left)
  const head = { operation_id: operationId, ...money }
  if (answer === undefined || fault !== undefined) {
    const error = errorOf(fault)
    const words = `${wordsOf(fault, used.cutCap)} ${moneyWords(used, left)}`
    return { structured: { ...head, error }, content: [text(words)], isError: true }
  }
  const { shown, content } = show(answer, used, room)
  const isError = answer.status >= 400
  return {
    structured: { ...head, status: answer.status, ...shown },
    content: [
      ...content,
      text(`${isError ? `The provider answered with status ${answer.status}. ` : ''}${moneyWords(used, left)}`),
    ],
    isError,
  }
}

function errorOf(fault: Fault | undefined) {
  const { code = 'internal_error', message = '', members = {}, retryable = false } = fault ?? {}
  const retryAfterSeconds = fault && retryAfterSecondsOf(fault)
  return {
    code,
    message,
    retryable,
    ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }),
    ...members,
  }
}

/** What happened, the amounts, and what to change. */
function wordsOf(fault: Fault | undefined, cutCap: number | undefined): string {
  if (fault === undefined) return 'The call failed.'
  const { needed_usd: needed, cap_usd: cap, left_usd: left, needed_total_usd: total, cost_usd: before } = fault.members
  const { fix_url: fix } = fault.members
  const amounts = [
    ...(needed !== undefined ? [`It can cost up to ${needed} USD.`] : []),
    ...(cap !== undefined
      ? [`max_price_usd was ${cap}${cutCap === undefined ? '' : ` (${cutCap} has more than 9 decimals)`}.`]
      : []),
    ...(total !== undefined ? [`With it, the batch can cost up to ${total} USD.`] : []),
    ...(left !== undefined ? [`${left} USD are left.`] : []),
    ...(before !== undefined && fault.code === 'idempotency_completed' ? [`That call was charged ${before} USD.`] : []),
    ...(fault.members.approval_url !== undefined ? [`approval_url: ${fault.members.approval_url}`] : []),
    ...(fix === undefined || fix === fault.members.approval_url ? [] : [`Where it can be changed: ${fix}`]),
  ]
  return [`${fault.code}: ${fault.message}`, ...amounts].join(' ')
}

function moneyWords({ id, cost, held, atMost, taskCost }: Used, { balance, budget }: Left): string {
  const left = [
    ...(budget === undefined ? [] : [`${formatUsd(budget.left)} USD of the budget (${budget.period})`]),
    ...(balance === undefined ? [] : [`${formatUsd(balance)} USD of the balance`]),
  ]
  return [
    ...(cost === undefined
      ? []
      : [cost === ZERO ? 'Nothing was charged for this request.' : `Cost: ${formatUsd(cost)} USD.`]),
    ...(held === undefined ? [] : [`Held until it has ended: ${formatUsd(held)} USD.`]),
    ...(taskCost === undefined ? [] : [`The task has cost ${formatUsd(taskCost)} USD.`]),
    ...(atMost === undefined ? [] : [`What it cost is not known yet, at most ${formatUsd(atMost)} USD.`]),
    ...(left.length === 0 ? [] : [`Left: ${left.join(', ')}.`]),
    `Request id: ${id}.`,
  ].join(' ')
}

type Shown = { readonly shown: Readonly<Record<string, unknown>>; readonly content: readonly Content[] }

/** An answer as far as there is room for it. */
function show({ body, headers }: Answer, used: Used, room: Room): Shown {
  const bytes = Buffer.byteLength(body)
  if (bytes > MOST_BYTES) return cut('', bytes, used)
  if (bytes <= READ_BYTES) return showText(body.toString(), headers, used, room)
  const { text: rest, pictures } = mayHavePictures(body) ? cutPictures(body.toString(), room) : NO_PICTURES
  if (rest !== '' && rest.length <= READ_BYTES) return withPictures(showText(rest, headers, used, room), pictures)
  const isText = TEXT.test(headers['content-type'] ?? '')
  const part = isText ? beginning(rest === '' ? body : rest, room) : ''
  return withPictures(cut(part, rest.length || bytes, used), pictures)
}

const NO_PICTURES = { text: '', pictures: [] }
const TEXT = /^text\/|charset=|json/i

const withPictures = ({ shown, content }: Shown, pictures: readonly Content[]): Shown => ({
  shown,
  content: [...content, ...pictures],
})

/** As many characters as there is room for, of which no more bytes are read than they can have. */
function beginning(body: string | Buffer, room: Room): string {
  const most = Math.max(0, room.characters)
  const part = (typeof body === 'string' ? body : body.subarray(0, 4 * most).toString()).slice(0, most)
  room.characters -= part.length
  return part
}

/** JSON as JSON, where there is room for all of it. */
function showText(whole: string, headers: Answer['headers'], used: Used, room: Room): Shown {
  const read = readExactly(whole)
  if (read === undefined) {
    const isText = /^text\/|charset=/i.test(headers['content-type'] ?? '')
    const shown = isText ? beginning(whole, room) : ''
    if (shown.length === whole.length) return { shown: { result: whole }, content: whole === '' ? [] : [text(whole)] }
    return cut(shown, Buffer.byteLength(whole), used)
  }
  const { json, pictures } = mayHavePictures(whole) ? takePictures(read.json, room) : { json: read.json, pictures: [] }
  const said = stringify(json)
  if (said !== undefined && said.length <= room.characters && isWithin(json, MOST_DEPTH)) {
    room.characters -= said.length
    return { shown: { result: json }, content: [text(said), ...pictures] }
  }
  const part = beginning(said ?? '', room)
  if (part === said) return { shown: { result_text: part }, content: [text(part), ...pictures] }
  return withPictures(cut(part, (said ?? whole).length, used), pictures)
}

/** An answer stands within others when it is written; what is nested deeper is shown as a text, so that all can be. */
const MOST_DEPTH = 64

function isWithin(json: unknown, depth: number): boolean {
  if (typeof json !== 'object' || json === null) return true
  return depth > 0 && Object.values(json).every((one) => isWithin(one, depth - 1))
}

/** What is nested deeper than the engine can write is not written. */
function stringify(json: unknown): string | undefined {
  try {
    return JSON.stringify(json)
  } catch {
    return undefined
  }
}

/** Too much for an agent. What is shown is its beginning, as text, and how to get the rest. */
function cut(part: string, total: number, { id }: Used): Shown {
  const how = `Only the first ${part.length} of ${total} characters are shown. Ask for less (fewer items, a smaller page, fewer fields), or make the same call over HTTP, which is charged again. Request id: ${id}.`
  return {
    shown: { result_text: part, truncated: { shown_characters: part.length, total_characters: total, how } },
    content: [...(part === '' ? [] : [text(part)]), text(how)],
  }
}
