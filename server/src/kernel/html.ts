/** Markup that may be sent as it is. Only `html` makes it, so that nothing in it was left unescaped. */
export class Html {
  readonly #text: string

  private constructor(text: string) {
    this.#text = text
  }

  /** Joins the words of a template, which are ours, and what is put between them, which is anybody's. */
  static of(words: TemplateStringsArray, ...values: readonly Value[]): Html {
    return new Html(words.map((word, at) => word + (at < values.length ? shown(values[at]) : '')).join(''))
  }

  toString(): string {
    return this.#text
  }
}

type Value = Html | string | number | null | undefined | readonly Html[]

export const html = Html.of

function shown(value: Value): string {
  if (value === null || value === undefined) return ''
  if (value instanceof Html) return value.toString()
  if (typeof value === 'string' || typeof value === 'number') return escaped(String(value))
  return value.map(shown).join('')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}
