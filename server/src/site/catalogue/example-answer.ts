import { type Html, html } from '../../kernel/html.ts'
import type { HeaderNames } from '../../wording/header-names.ts'
import { codeBlock, coloured } from '../code.ts'
import { dayOf } from '../dates.ts'
import { jsonText } from '../json-text.ts'
import recorded from './example-answers.json' with { type: 'json' }

/** What the call on the page of an operation was answered, as `scripts/example-answers.ts` recorded it. */
export type ExampleAnswer = {
  readonly status: number
  /** Null where its answer does not tell it: a task's, and a stream's. */
  readonly cost_usd: string | null
  readonly price_version: string | null
  /** One value, or the events of a stream. Texts and lists are shortened. */
  readonly body: readonly unknown[]
}

export const EXAMPLE_ANSWERS: Readonly<Record<string, ExampleAnswer | undefined>> = recorded.answers

/** How the recording says that a list is longer. It stands there as no text that was answered. */
const MORE = /"(… [\d,]+ more)"/g

export function exampleAnswer(id: string, names: Pick<HeaderNames, 'cost' | 'priceVersion'>): Html | undefined {
  const answer = EXAMPLE_ANSWERS[id]
  if (answer === undefined) return undefined
  const { status, cost_usd: cost, price_version: version, body } = answer
  const [only] = body
  const text = body.length === 1 ? jsonText(only) : body.map(frame).join('\n\n')
  const header = (name: string, value: string) => html`<span class="k">${name}</span>: ${value}`
  const heads = html`${version === null ? undefined : html`${header(names.priceVersion, version)}\n`}${cost === null ? undefined : html`<span class="h">${header(names.cost, cost)}</span>`}`
  // The line that stands out ends by itself.
  const code = html`${heads}${cost !== null ? '\n\n' : version === null ? '' : '\n'}${coloured(text.replace(MORE, '$1'))}`
  return html`${codeBlock({ title: `${status} OK`, code, label: 'The answer' })}<p class="fb-soft">The sandbox answered this on ${dayOf(new Date(recorded.on))}, at the prices it had then. It makes its answers up. Where … stands, the answer is longer.</p>`
}

function frame(event: unknown): string {
  return typeof event === 'string' ? event : `data: ${jsonText(event)}`
}
