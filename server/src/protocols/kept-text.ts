export const MOST_TEXT_BYTES = 1_048_576
const FIRST_TEXT_BYTES = 1_024
/** What UTF-8 makes of a unit of UTF-16. */
const MOST_BYTES_OF_UNIT = 3
/** From here on a byte is no character of its own. */
const NOT_ASCII = 0x80

/**
 * Text that grows by a few characters at a time, in one block of UTF-8. It is cut at its bound: whoever counts its tokens
 * then counts too few, and the house bears the rest.
 */
export class KeptText {
  #block = Buffer.alloc(0)
  #isCut = false
  bytes = 0
  /** Beyond the bound too. */
  seenBytes = 0

  add(text: string): void {
    if (this.#isCut) {
      this.seenBytes += Buffer.byteLength(text)
      return
    }
    const most = this.bytes + MOST_BYTES_OF_UNIT * text.length
    const needed = Math.min(most, MOST_TEXT_BYTES)
    if (needed > this.#block.length) this.#grow(needed)
    if (most > MOST_TEXT_BYTES) this.#isCut = this.bytes + Buffer.byteLength(text) > MOST_TEXT_BYTES
    const written = this.#block.write(text, this.bytes)
    this.bytes += written
    this.seenBytes += this.#isCut ? Buffer.byteLength(text) : written
  }

  /** Of UTF-8, some bytes of a piece. */
  addBytes(piece: Buffer, start: number, end: number): void {
    if (this.bytes + end - start > this.#block.length || !this.#addAscii(piece, start, end)) {
      this.add(piece.toString('utf8', start, end))
    }
  }

  first(bytes: number): string {
    return this.between(0, bytes)
  }

  between(from: number, to: number): string {
    return this.#block.toString('utf8', from, to)
  }

  /** Byte by byte, which is quicker than to call anything for the few that most frames have. False where it is not ASCII. */
  #addAscii(piece: Buffer, start: number, end: number): boolean {
    if (this.#isCut) {
      this.seenBytes += end - start
      return true
    }
    let to = this.bytes
    for (let at = start; at < end; at += 1) {
      const byte = piece[at] ?? NOT_ASCII
      if (byte >= NOT_ASCII) return false
      this.#block[to] = byte
      to += 1
    }
    this.seenBytes += to - this.bytes
    this.bytes = to
    return true
  }

  #grow(needed: number): void {
    // Its own memory: a piece of the pool would keep all of its block from being freed for as long as the stream lasts.
    const larger = Buffer.allocUnsafeSlow(
      Math.max(needed, Math.min(2 * this.#block.length, MOST_TEXT_BYTES), FIRST_TEXT_BYTES),
    )
    this.#block.copy(larger, 0, 0, this.bytes)
    this.#block = larger
  }
}
