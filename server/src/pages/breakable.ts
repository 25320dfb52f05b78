import { type Html, html } from '../kernel/html.ts'

/** The id of an operation, which breaks behind its underscores where a line is short. */
export function breakable(id: string): Html {
  return html`${id.split(/(?<=_)/).map((part) => html`${part}<wbr>`)}`
}
