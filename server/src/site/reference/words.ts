import { type Html, html } from '../../kernel/html.ts'

/** A sentence of a contract, in which names stand between backticks. */
export function words(text: string): Html {
  return html`${text.split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}
