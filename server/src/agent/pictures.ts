import type { Content } from './tool-result.ts'

/** What is left of an answer's room: a batch shares one. */
export type Room = { characters: number; pictures: number; pictureCharacters: number; shown: number }

/** Agents put what they are told into a context of some hundred thousand tokens. */
export const roomOfAnswer = (): Room => ({
  characters: 100_000,
  pictures: 4,
  pictureCharacters: 8 * 1_048_576,
  shown: 0,
})

/** What an average picture takes, of which there has to be room before one is paid for. */
const PICTURE_CHARACTERS = 2 * 1_048_576

export const hasRoomForPicture = ({ pictures, pictureCharacters }: Room): boolean =>
  pictures > 0 && pictureCharacters >= PICTURE_CHARACTERS

/** By the first characters of their base64. */
const TYPES: readonly (readonly [string, string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['UklGR', 'image/webp'],
  ['R0lGOD', 'image/gif'],
]
const LEAST = 64
const DEPTH = 8

/**
 * Takes pictures out of an answer: they are content of their own, and would be a wall of letters in its text. What they were is a word
 * in their place.
 */
export function takePictures(
  json: unknown,
  room: Room,
): { readonly json: unknown; readonly pictures: readonly Content[] } {
  const pictures: Content[] = []
  const named = (data: string) => take(data, room, pictures)

  function walk(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return value.length < LEAST ? value : named(value)
    if (typeof value !== 'object' || value === null || depth === 0) return value
    if (Array.isArray(value)) return value.map((one) => walk(one, depth - 1))
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, walk(one, depth - 1)]))
  }

  return { json: walk(json, DEPTH), pictures }
}

/** A text in the place of a picture, which is put to the others where there is room for it. What is no picture stays as it is. */
function take(data: string, room: Room, pictures: Content[]): string {
  const mimeType = typeOf(data)
  if (mimeType === undefined) return data
  if (room.pictures <= 0 || data.length > room.pictureCharacters)
    return `[a picture of ${Math.floor((data.length * 3) / 4)} bytes that is not shown: ask for fewer or smaller ones]`
  room.pictures -= 1
  room.pictureCharacters -= data.length
  room.shown += 1
  pictures.push({ type: 'image', data, mimeType })
  return `[picture ${room.shown}]`
}

/** A text of JSON that is a picture, with its quotes. There is none within another, so that a text is read once. */
const WRITTEN = new RegExp(
  `"((?:${TYPES.map(([start]) => start.replaceAll('/', '\\/')).join('|')})[A-Za-z0-9+/]+={0,2})"`,
  'g',
)

/** The same of JSON that is too large to be read: what is left of it without its pictures mostly is small. */
export function cutPictures(
  text: string,
  room: Room,
): { readonly text: string; readonly pictures: readonly Content[] } {
  const pictures: Content[] = []
  return { text: text.replaceAll(WRITTEN, (_, data: string) => `"${take(data, room, pictures)}"`), pictures }
}

function typeOf(data: string): string | undefined {
  const found = TYPES.find(([start]) => data.startsWith(start))?.[1]
  return found !== undefined && /^[A-Za-z0-9+/]+={0,2}$/.test(data) ? found : undefined
}

/** Whether there is anything to take out: looking is cheaper than walking. */
export function mayHavePictures(body: string | Buffer): boolean {
  return TYPES.some(([start]) => body.includes(`"${start}`))
}
