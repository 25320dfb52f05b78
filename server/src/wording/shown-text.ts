/** Of what a call is made of, so much is shown to a person. */
export const SHOWN_CHARACTERS = 16_000
/** A longer text is shown by its beginning, so that it does not push away what stands behind it. */
const TEXT_CHARACTERS = 2_000
/** What is shorter stands before the rest of its object. */
const SHORT_CHARACTERS = 200

export type Shown = {
  readonly text: string
  readonly isWhole: boolean
}

/** A number as it is written: two that a double takes for the same are not. */
export class Exact {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Writes out what a stranger has made, for a person to decide about: nothing in it is hidden, and no more is written than is shown. */
export function createShownText() {
  let text = ''
  let isWhole = true

  function write(part: string): void {
    const room = SHOWN_CHARACTERS - text.length
    if (part.length > room) isWhole = false
    text += part.slice(0, room)
  }

  function quoted(value: string): string {
    const isLong = value.length > TEXT_CHARACTERS
    if (isLong) isWhole = false
    const begins = seen(JSON.stringify(value.slice(0, TEXT_CHARACTERS)))
    return isLong ? `${begins} … and ${value.length - TEXT_CHARACTERS} characters more` : begins
  }

  function writeValue(value: unknown, indent: string): void {
    if (text.length >= SHOWN_CHARACTERS) isWhole = false
    else if (typeof value === 'string') write(quoted(value))
    else if (typeof value !== 'object' || value === null) write(JSON.stringify(value))
    else if (value instanceof Exact) write(value.text)
    else if (Array.isArray(value))
      writeMembers(
        '[]',
        value.map((member) => ['', member]),
        indent,
      )
    else writeMembers('{}', shortFirst(Object.entries(value)), indent)
  }

  function writeMembers(brackets: string, members: readonly Member[], indent: string): void {
    if (members.length === 0) {
      write(brackets)
      return
    }
    const inner = `${indent}  `
    let before = brackets.slice(0, 1)
    for (const [name, member] of members) {
      write(`${before}\n${inner}${brackets === '{}' ? `${quoted(name)}: ` : ''}`)
      writeValue(member, inner)
      before = ','
      if (text.length >= SHOWN_CHARACTERS) break
    }
    write(`\n${indent}${brackets.slice(1)}`)
  }

  return {
    value(value: unknown): void {
      if (text !== '') write('\n')
      writeValue(value, '')
    },
    /** Of what is too large to be read. */
    beginning(bytes: Buffer): void {
      if (text !== '') write('\n')
      write(seen(bytes.toString('utf8', 0, SHOWN_CHARACTERS)))
      isWhole = false
    },
    end: (): Shown => ({ text, isWhole }),
  }
}

type Member = readonly [name: string, value: unknown]

function shortFirst(members: readonly Member[]): readonly Member[] {
  const isShort = ([, value]: Member) =>
    typeof value === 'string'
      ? value.length <= SHORT_CHARACTERS
      : typeof value !== 'object' || value === null || value instanceof Exact
  return [...members.filter(isShort), ...members.filter((member) => !isShort(member))]
}

/** What has no form of its own, or turns the order of others round, and every space that is not the usual one. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu

function seen(text: string): string {
  return text.replace(UNSEEN, (character) =>
    character === '\n'
      ? character
      : Array.from({ length: character.length }, (_, at) => escapeOf(character.charCodeAt(at))).join(''),
  )
}

const escapeOf = (unit: number) => `\\u${unit.toString(16).padStart(4, '0')}`
