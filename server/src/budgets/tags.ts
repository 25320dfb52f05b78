/** Words that say what a call is for, such as `team=search` or `run=42`: spend is counted and bounded by them. */
export type Tag = { readonly name: string; readonly value: string }

export const TAGS_LIMIT = 8
const NAME = /^[a-z][a-z0-9_.-]{0,31}$/
const VALUE = /^[A-Za-z0-9_.:/@+-]{1,64}$/

export const NAME_WORDS = 'a tag name has 1 to 32 of a-z, 0-9, "_", "-" and ".", and begins with a letter'
export const VALUE_WORDS = 'a tag value has 1 to 64 of A-Z, a-z, 0-9 and _.:/@+-'

/** The tag that a text says; throws where it is none. */
export function tagIn(text: string): Tag {
  const { name, value } = parted(text)
  if (!VALUE.test(value)) throw new RangeError(`${VALUE_WORDS}: ${shown(text)}`)
  return { name, value }
}

/** The name of a tag whose every value is meant: `run=*`; undefined where the text is no such thing. */
export function everyValueIn(text: string): string | undefined {
  const { name, value } = parted(text)
  return value === '*' ? name : undefined
}

function parted(text: string): Tag {
  const at = text.indexOf('=')
  if (at === -1) throw new RangeError(`a tag is written name=value: ${shown(text)}`)
  const [name, value] = [text.slice(0, at), text.slice(at + 1)]
  if (!NAME.test(name)) throw new RangeError(`${NAME_WORDS}: ${shown(text)}`)
  return { name, value }
}

/** In the order of their names. Throws where one is no tag, where a name stands twice, and where they are too many. */
export function tagsIn(texts: readonly string[]): readonly Tag[] {
  if (texts.length > TAGS_LIMIT)
    throw new RangeError(`a call has at most ${TAGS_LIMIT} tags; these are ${texts.length}`)
  const tags = texts.map(tagIn)
  const twice = tags.find(({ name }, at) => tags.findIndex((tag) => tag.name === name) !== at)
  if (twice !== undefined) throw new RangeError(`the tag ${shown(twice.name)} stands twice`)
  return tags.sort(byName)
}

export function byName(one: Tag, other: Tag): number {
  return one.name < other.name ? -1 : 1
}

export function tagText({ name, value }: Tag): string {
  return `${name}=${value}`
}

const SHOWN_MOST = 100

function shown(text: string): string {
  return JSON.stringify(text.slice(0, SHOWN_MOST))
}
