import { gzipSync } from 'node:zlib'

/** A body that need not be in memory as a whole. */
export type Bytes = { readonly length: number; readonly chunks: () => Iterable<Buffer> }

const CHUNK = 64 * 1024
const MEMBER = 1024 * 1024

export function wholeBytes(content: string | Buffer): Bytes {
  const buffer = typeof content === 'string' ? Buffer.from(content) : content
  return { length: buffer.length, chunks: () => [buffer] }
}

/** The JSON object with one more member, as long as makes it so many bytes in all. Never shorter than it was. */
export function paddedTo(length: number, json: string): Bytes {
  const head = Buffer.from(`${json.slice(0, -1)},"padding":"`)
  const tail = Buffer.from('"}')
  const padding = Math.max(0, length - head.length - tail.length)
  return {
    length: head.length + padding + tail.length,
    *chunks() {
      yield head
      yield* repeated(Buffer.alloc(CHUNK, 'x'), padding)
      yield tail
    },
  }
}

/** About 1 MiB of gzip that unpacks to 1 GiB of blanks and then the content, by members one after another (RFC 1952). */
export function gzipBomb(content: string): Bytes {
  const blanks = gzipSync(Buffer.alloc(MEMBER, ' '))
  const last = gzipSync(content)
  const members = 1024
  return {
    length: members * blanks.length + last.length,
    *chunks() {
      for (let at = 0; at < members; at += 1) yield blanks
      yield last
    },
  }
}

/** The first so many bytes. */
export function* firstOf(length: number, bytes: Bytes): Iterable<Buffer> {
  let left = length
  for (const chunk of bytes.chunks()) {
    if (left <= 0) return
    yield left < chunk.length ? chunk.subarray(0, left) : chunk
    left -= chunk.length
  }
}

function* repeated(chunk: Buffer, length: number): Iterable<Buffer> {
  for (let left = length; left > 0; left -= chunk.length) yield left < chunk.length ? chunk.subarray(0, left) : chunk
}
