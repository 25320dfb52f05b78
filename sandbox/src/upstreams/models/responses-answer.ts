import { isObject, type JsonObject } from '../../json.ts'
import { hashOf, Random } from '../../random.ts'
import type { Choice } from './answer.ts'
import type { Answer } from './dialect.ts'
import { deltasOf } from './frames.ts'
import { cutTo, piecesOf } from './prose.ts'
import { ownTools } from './responses-question.ts'
import type { Call } from './script.ts'
import type { Frame } from './stream.ts'
import { bytesOf } from './tokens.ts'

const EPOCH_SECONDS = Date.UTC(2026, 0, 1) / 1000
const YEAR_SECONDS = 31_536_000
const SUMMARY_BYTES = 40
const PADDING = 'aZ3kQx9LmT0bRw7e'
/** Members of the request that a response repeats, and what they are where it does not have them. */
const REPEATED: JsonObject = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  store: true,
  temperature: 1,
  text: { format: { type: 'text' }, verbosity: 'medium' },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
}

export function responsesBody(answer: Answer): JsonObject {
  return { ...finished(answer), ...(answer.usage && { usage: answer.usage }) }
}

/** All but the figures. */
function finished(answer: Answer): JsonObject {
  const [choice] = answer.choices
  const isCut = choice?.stop === 'length'
  return {
    ...opening(answer),
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output: choice === undefined ? [] : itemsOf(choice, answer),
  }
}

function opening(answer: Answer): JsonObject {
  const { asked, question } = answer
  const body = isObject(asked.body) ? asked.body : {}
  const repeated = Object.entries(REPEATED).map(([name, value]) => [name, body[name] ?? value])
  return {
    id: idOf('resp', answer),
    object: 'response',
    created_at: EPOCH_SECONDS + randomOf('created', answer).between(0, YEAR_SECONDS),
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    model: question.model,
    output: [],
    ...Object.fromEntries(repeated),
    service_tier: answer.tier ?? 'default',
  }
}

/** From seed and request, so that the bytes are always the same. */
function randomOf(what: string, { asked: { seed, bodySha256 } }: Answer): Random {
  return new Random(hashOf(seed, `responses ${what}`, bodySha256))
}

function idOf(prefix: string, answer: Answer, at = 0): string {
  return `${prefix}_${randomOf(at === 0 ? prefix : `${prefix} ${at}`, answer).hex(48)}`
}

function itemsOf(choice: Choice, answer: Answer): JsonObject[] {
  const status = choice.stop === 'length' ? 'incomplete' : 'completed'
  const items = ranItems(answer)
  if (choice.reasoning !== '') items.push(reasoningOf(choice, answer))
  if (hasMessage(choice)) items.push(messageOf(choice, answer, status))
  for (const [at, call] of choice.calls.entries()) items.push(callOf(call, at, answer, status))
  return items
}

/** An answer without calls has a message, also where nothing is said. */
function hasMessage({ text, tail, calls }: Choice): boolean {
  return calls.length === 0 || text + tail !== ''
}

/** An item for each call of a tool that the vendor ran. */
function ranItems(answer: Answer): JsonObject[] {
  const items: JsonObject[] = []
  for (const [tool, count] of Object.entries(answer.calls))
    for (let at = 0; at < count; at += 1)
      items.push({
        id: `${idOf('ran', answer)}_${items.length}`,
        type: `${tool}_call`,
        status: 'completed',
        ...(tool === 'web_search' && { action: { type: 'search', query: 'sandbox' } }),
      })
  return items
}

/** What was thought is only counted; what is told of it is its beginning, and all of it where only the vendor can read it. */
function reasoningOf({ reasoning }: Choice, answer: Answer): JsonObject {
  const summary = summaryOf(reasoning, answer)
  const { include } = Object(answer.asked.body)
  const isKept = Array.isArray(include) && include.includes('reasoning.encrypted_content')
  return {
    id: idOf('rs', answer),
    type: 'reasoning',
    summary: summary === '' ? [] : [summaryPart(summary)],
    ...(isKept && { encrypted_content: Buffer.from(reasoning).toString('base64') }),
  }
}

function summaryOf(reasoning: string, { asked }: Answer): string {
  const { summary } = Object(Object(asked.body).reasoning)
  return typeof summary === 'string' ? cutTo(SUMMARY_BYTES, reasoning) : ''
}

const summaryPart = (text: string): JsonObject => ({ type: 'summary_text', text })
const textPart = (text: string): JsonObject => ({ type: 'output_text', annotations: [], logprobs: [], text })

function messageOf({ text, tail }: Choice, answer: Answer, status: string): JsonObject {
  return message(answer, status, [textPart(text + tail)])
}

function message(answer: Answer, status: string, content: readonly JsonObject[]): JsonObject {
  return { id: idOf('msg', answer), type: 'message', status, content, role: 'assistant' }
}

/** A tool that is no function gets a text. */
function callOf({ name, json }: Call, at: number, answer: Answer, status: string): JsonObject {
  const { type, namespace } = Object(ownTools(Object(answer.asked.body)).find((tool) => tool.name === name))
  const shared = { status, call_id: idOf('call', answer, at), name, ...(namespace !== undefined && { namespace }) }
  if (type === 'custom') return { id: idOf('ctc', answer, at), type: 'custom_tool_call', ...shared, input: json }
  return { id: idOf('fc', answer, at), type: 'function_call', ...shared, arguments: json }
}

/** The response as it begins, each item with its deltas and then whole, and the response as it ended, with the figures. */
export function* responsesFrames(answer: Answer): Iterable<Frame> {
  const [choice] = answer.choices
  if (choice === undefined) return
  let number = 0
  const told = ({ type, members, ...frame }: Told): Frame => {
    const text = eventText(type, { ...members, sequence_number: number })
    number += 1
    return { text, kind: 'other', bytes: 0, ...frame }
  }
  const begun = opening(answer)
  yield told({ type: 'response.created', members: { response: { ...begun, usage: null } } })
  yield told({ type: 'response.in_progress', members: { response: { ...begun, usage: null } } })
  for (const event of itemEvents(choice, answer)) yield told(event)
  const { usage } = answer
  const response = { ...finished(answer), usage: usage ?? null }
  const type = choice.stop === 'length' ? 'response.incomplete' : 'response.completed'
  yield told({ type, members: { response }, kind: 'end', ...(usage && { usage }) })
}

/** An event before it has its number. */
type Told = { readonly type: string; readonly members: JsonObject } & Partial<Omit<Frame, 'text'>>

function* itemEvents(choice: Choice, answer: Answer): Iterable<Told> {
  const ran = ranItems(answer)
  for (const [at, item] of ran.entries()) {
    const begun = { ...item, status: 'in_progress' }
    yield { type: 'response.output_item.added', members: { output_index: at, item: begun } }
    yield { type: 'response.output_item.done', members: { output_index: at, item } }
  }
  let index = ran.length
  if (choice.reasoning !== '') {
    yield* reasoningEvents(index, choice, answer)
    index += 1
  }
  if (hasMessage(choice)) {
    yield* messageEvents(index, choice, answer)
    index += 1
  }
  for (const at of choice.calls.keys()) yield* callEvents(index + at, at, choice, answer)
}

function* reasoningEvents(index: number, choice: Choice, answer: Answer): Iterable<Told> {
  const item = reasoningOf(choice, answer)
  const place = { output_index: index }
  // All that was thought is counted before a word of the answer.
  const bytes = bytesOf(choice.reasoning)
  yield { type: 'response.output_item.added', members: { ...place, item: { ...item, summary: [] } }, bytes }
  const summary = summaryOf(choice.reasoning, answer)
  if (summary !== '') {
    const at = { item_id: item.id, ...place, summary_index: 0 }
    yield { type: 'response.reasoning_summary_part.added', members: { ...at, part: summaryPart('') } }
    for (const delta of piecesOf(summary, answer.deltaBytes))
      yield { type: 'response.reasoning_summary_text.delta', members: { ...at, delta, ...padding(delta, answer) } }
    yield { type: 'response.reasoning_summary_text.done', members: { ...at, text: summary } }
    yield { type: 'response.reasoning_summary_part.done', members: { ...at, part: summaryPart(summary) } }
  }
  yield { type: 'response.output_item.done', members: { ...place, item } }
}

function* messageEvents(index: number, choice: Choice, answer: Answer): Iterable<Told> {
  const { text, tail, stop } = choice
  const item = message(answer, 'in_progress', [])
  const at = { item_id: item.id, output_index: index, content_index: 0 }
  yield { type: 'response.output_item.added', members: { output_index: index, item } }
  yield { type: 'response.content_part.added', members: { ...at, part: textPart('') } }
  for (const delta of deltasOf(text, tail, answer.deltaBytes))
    yield deltaOf('response.output_text', { ...at, delta, logprobs: [], ...padding(delta, answer) })
  yield { type: 'response.output_text.done', members: { ...at, text: text + tail, logprobs: [] } }
  yield { type: 'response.content_part.done', members: { ...at, part: textPart(text + tail) } }
  const done = messageOf(choice, answer, stop === 'length' ? 'incomplete' : 'completed')
  yield { type: 'response.output_item.done', members: { output_index: index, item: done } }
}

function* callEvents(index: number, place: number, { calls, stop }: Choice, answer: Answer): Iterable<Told> {
  const call = calls[place]
  if (call === undefined) return
  const item = callOf({ ...call, json: '' }, place, answer, 'in_progress')
  const at = { item_id: item.id, output_index: index }
  const isCustom = item.type === 'custom_tool_call'
  const kind = isCustom ? 'response.custom_tool_call_input' : 'response.function_call_arguments'
  yield { type: 'response.output_item.added', members: { output_index: index, item }, bytes: bytesOf(call.name) }
  for (const delta of piecesOf(call.json, answer.deltaBytes))
    yield deltaOf(kind, { ...at, delta, ...padding(delta, answer) })
  yield { type: `${kind}.done`, members: { ...at, [isCustom ? 'input' : 'arguments']: call.json } }
  const done = callOf(call, place, answer, stop === 'length' ? 'incomplete' : 'completed')
  yield { type: 'response.output_item.done', members: { output_index: index, item: done } }
}

function deltaOf(kind: string, members: JsonObject & { readonly delta: string }): Told {
  return { type: `${kind}.delta`, members, kind: 'delta', bytes: bytesOf(members.delta) }
}

/** So that the size of a frame does not tell that of its text, unless the caller does not mind. */
function padding(delta: string, { asked }: Answer): JsonObject {
  const { include_obfuscation: isWanted = true } = Object(Object(asked.body).stream_options)
  return isWanted === true ? { obfuscation: PADDING.slice(bytesOf(delta) % PADDING.length) } : {}
}

export function eventText(type: string, members: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}
