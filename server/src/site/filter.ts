import { type Html, html } from '../kernel/html.ts'
import type { Form } from '../pages/form-data.ts'

/** How a list is narrowed without a script: by words of a query, and by links that look like buttons. */

const WORDS_LENGTH = 100

export function wordsIn(query: Form): string {
  return queryText(query, 'q', WORDS_LENGTH)
}

/** A field of a query, cut to what is taken. Half of a character that the cut has left can't stand in an address, and is replaced. */
export function queryText(query: Form, name: string, most: number): string {
  return (query.get(name) ?? '').slice(0, most).toWellFormed()
}

/** Whether all words stand in a text, in whatever order. */
export function hasWords(text: string, words: string): boolean {
  const within = text.toLowerCase()
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => within.includes(word))
}

export function chip(href: string, text: string, isCurrent: boolean): Html {
  return html`<a href="${href}"${isCurrent ? html` aria-current="true"` : undefined}>${text}</a>`
}
