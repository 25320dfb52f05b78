import { crc32, deflateSync } from 'node:zlib'
import { isObject, type JsonObject } from '../../json.ts'
import { hashOf, Random } from '../../random.ts'
import type { Asked, Knobs } from '../../upstream.ts'
import { given, isModelName, isWholeNumber, type Wrong } from './question.ts'
import { bytesOf, tokensOfBytes } from './tokens.ts'
import type { Made } from './whole-reply.ts'

const CREATED = Date.UTC(2026, 0, 1) / 1000
const PICTURES_LIMIT = 10
const SQUARE = '1024x1024'
const WORDS = ['size', 'quality', 'style', 'background', 'output_format', 'response_format', 'moderation']
/** Of a square picture; others have half as much again. */
const QUALITY_TOKENS: Readonly<Record<string, number>> = { low: 272, medium: 1_056, high: 4_160 }
const OTHER_QUALITY_TOKENS = 1_056

/** As many pictures as are asked for, small ones, from seed and request alone. */
export function imagesFor(asked: Asked): Made | Wrong {
  const { body } = asked
  if (!isObject(body)) return { wrong: 'We could not parse the JSON body of your request.', field: null }
  const wrong = wrongField(body)
  if (wrong !== undefined) return { wrong: `Invalid value for '${wrong}'.`, field: wrong }
  const count = ({ images }: Knobs) => images ?? Number(body.n ?? 1)
  return {
    model: String(body.model),
    inputTokens: tokensOfBytes(bytesOf(String(body.prompt))),
    outputTokens: (knobs) => knobs.outputTokens ?? count(knobs) * pictureTokens(body.size, body.quality),
    usage: usageOf,
    images: count,
    body: (knobs) => ({
      created: CREATED,
      data: Array.from({ length: count(knobs) }, (_, index) => pictureOf(asked, body, index)),
      ...Object.fromEntries(['size', 'quality'].map((name) => [name, body[name] ?? 'auto'])),
    }),
  }
}

/** What one picture has. */
export function pictureTokens(size: unknown, quality: unknown): number {
  const tokens = QUALITY_TOKENS[String(quality)] ?? OTHER_QUALITY_TOKENS
  return !given(size) || size === 'auto' || size === SQUARE ? tokens : tokens * 1.5
}

function usageOf(inputTokens: number, outputTokens: number): JsonObject {
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    input_tokens_details: { text_tokens: inputTokens, image_tokens: 0 },
  }
}

function wrongField(body: JsonObject): string | undefined {
  if (!isModelName(body.model)) return 'model'
  if (typeof body.prompt !== 'string' || body.prompt === '') return 'prompt'
  if (given(body.n) && !(isWholeNumber(body.n, 1) && body.n <= PICTURES_LIMIT)) return 'n'
  return WORDS.find((name) => given(body[name]) && typeof body[name] !== 'string')
}

function pictureOf({ seed, bodySha256 }: Asked, body: JsonObject, index: number): JsonObject {
  const random = new Random(hashOf(seed, 'openai image', bodySha256, String(index)))
  if (body.response_format === 'url') return { url: `https://pictures.invalid/${random.hex(32)}.png` }
  return { b64_json: png(random).toString('base64') }
}

const SIDE = 8
const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')

/** A small square of one colour. */
function png(random: Random): Buffer {
  const color = Buffer.from(random.hex(6), 'hex')
  const line = Buffer.concat([Buffer.from([0]), ...Array.from({ length: SIDE }, () => color)])
  const header = Buffer.alloc(13)
  header.writeUInt32BE(SIDE, 0)
  header.writeUInt32BE(SIDE, 4)
  // Eight bits of red, green and blue.
  header.set([8, 2], 8)
  const lines = Buffer.concat(Array.from({ length: SIDE }, () => line))
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('IDAT', deflateSync(lines)), chunk('IEND')])
}

function chunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const content = Buffer.concat([Buffer.from(type), data])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  check.writeUInt32BE(crc32(content))
  return Buffer.concat([length, content, check])
}
