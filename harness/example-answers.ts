import type { Operation } from '../server/src/catalogue/operation.ts'
import type { ExampleAnswer } from '../server/src/site/catalogue/example-answer.ts'
import { sampleCall } from '../server/src/site/catalogue/samples.ts'
import { createHeaderNames } from '../server/src/wording/header-names.ts'
import { defaultNames } from './recorded-contract.ts'
import { EMBEDDING_MODEL, IMAGE_TOKENS_MODEL, VIDEO_MODEL } from './seed.ts'

/** What operations answer to the calls on their pages, shortened to what fits there. */

const names = defaultNames()
const headerNames = createHeaderNames('Farebox')
const ITEMS_SHOWN = 2
const CHARACTERS_SHOWN = 160

function modelFor({ protocol }: Operation): string {
  if (protocol === 'video') return VIDEO_MODEL
  if (protocol === 'openai_images') return IMAGE_TOKENS_MODEL
  return protocol?.includes('embed') === true ? EMBEDDING_MODEL : 'sandbox/text'
}

/** Makes the call as it stands on the page of an operation. */
export async function answerOf(url: string, secret: string, operation: Operation): Promise<ExampleAnswer> {
  const { target, headers, body } = sampleCall(operation, operation.example, modelFor(operation), {
    names,
    headerNames,
  })
  const answer = await fetch(url + target, {
    method: operation.method,
    headers: {
      authorization: `Bearer ${secret}`,
      ...(body !== null && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== null && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${operation.id}: ${answer.status} ${text}`)
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  return {
    status: answer.status,
    cost_usd: answer.headers.get(headerNames.cost),
    price_version: answer.headers.get(headerNames.priceVersion),
    body: isStream ? eventsIn(text) : [shortened(JSON.parse(text))],
  }
}

/** The first event and the last ones, which say what it cost. */
function eventsIn(text: string): readonly unknown[] {
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => shortened(JSON.parse(data)))
  return events.length <= ITEMS_SHOWN ? events : [events[0], more(events.length - ITEMS_SHOWN), events.at(-1)]
}

const more = (count: number) => `… ${count.toLocaleString('en')} more`

function shortened(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length > CHARACTERS_SHOWN ? `${value.slice(0, CHARACTERS_SHOWN / 2)}…` : value
  if (Array.isArray(value)) {
    const items = value.slice(0, ITEMS_SHOWN).map(shortened)
    return value.length > ITEMS_SHOWN + 1 ? [...items, more(value.length - ITEMS_SHOWN)] : value.map(shortened)
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shortened(one)]))
}

/** Of a value what stays the same from one answer to the next: its members and their types. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return value === null ? null : typeof value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shapeOf(one)]))
}
