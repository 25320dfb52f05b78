/** A run of bytes that belongs to one message. */
export type Piece = {
  readonly bytes: Buffer
  /** Which message of its direction this is, counted from 0. */
  readonly message: number
  /** Where in the message the bytes begin. */
  readonly offset: number
  readonly messageLength: number
}

const LENGTH_BYTES = 4
const TYPE_BYTES = 1

/**
 * Splits one direction of a PostgreSQL connection without TLS into messages. A message is a type byte, a length and a
 * body; only the first one of a client has no type. Bytes of a header whose end has not arrived yet are kept back.
 */
export function createMessageSplitter(sender: 'client' | 'server'): (chunk: Buffer) => Piece[] {
  let kept = Buffer.alloc(0)
  let message = 0
  let offset = 0
  let messageLength = 0

  return (chunk) => {
    const pieces: Piece[] = []
    let rest = Buffer.concat([kept, chunk])
    while (rest.length > 0) {
      if (offset === 0) {
        const typeBytes = sender === 'client' && message === 0 ? 0 : TYPE_BYTES
        if (rest.length < typeBytes + LENGTH_BYTES) break
        messageLength = typeBytes + rest.readUInt32BE(typeBytes)
      }
      const bytes = rest.subarray(0, messageLength - offset)
      pieces.push({ bytes, message, offset, messageLength })
      offset += bytes.length
      rest = rest.subarray(bytes.length)
      if (offset < messageLength) continue
      offset = 0
      message += 1
    }
    kept = rest
    return pieces
  }
}

/** Where messages are not told apart, all of a direction is one without an end. */
export function asOneMessage(bytes: Buffer): Piece[] {
  return [{ bytes, message: 0, offset: 0, messageLength: Number.POSITIVE_INFINITY }]
}
