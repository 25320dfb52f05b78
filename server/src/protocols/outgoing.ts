const NO_BYTES: Buffer = Buffer.alloc(0)

/** What a piece gives to the caller: one view of the piece where nothing in it was changed, else one copy. */
export class Outgoing {
  readonly #parts: Buffer[] = []
  /** The first of those that lie one behind the other, and how many bytes they have together. */
  #first = NO_BYTES
  #bytes = 0

  add(bytes: Buffer): void {
    if (bytes.buffer !== this.#first.buffer || bytes.byteOffset !== this.#first.byteOffset + this.#bytes) {
      this.#endRun()
      this.#first = bytes
    }
    this.#bytes += bytes.length
  }

  buffers(): readonly Buffer[] {
    this.#endRun()
    return this.#parts.length > 1 ? [Buffer.concat(this.#parts)] : this.#parts
  }

  #endRun(): void {
    const { buffer, byteOffset, length } = this.#first
    if (this.#bytes === length && length > 0) this.#parts.push(this.#first)
    else if (this.#bytes > 0) this.#parts.push(Buffer.from(buffer, byteOffset, this.#bytes))
    this.#bytes = 0
  }
}
