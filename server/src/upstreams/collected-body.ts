const BLOCK_BYTES = 65_536
const EMPTY = Buffer.alloc(0)

/**
 * A body that is kept whole. Pieces are copied together as they come: a piece of a byte costs a hundred in bookkeeping, and
 * an upstream can send a body in as many pieces as it has bytes.
 */
export class CollectedBody {
  readonly #declaredBytes: number | undefined
  /** The first piece, which is often the only one. */
  #first: Buffer = EMPTY
  #full: Buffer[] = []
  #block: Buffer = EMPTY
  #used = 0

  constructor(declaredBytes: number | undefined) {
    this.#declaredBytes = declaredBytes
  }

  add(piece: Buffer): void {
    if (this.#block.length === 0) {
      if (this.#first.length === 0) {
        this.#first = piece
        return
      }
      // Where the length is known, one block takes it all; its pages are not used before something is written there.
      this.#startBlock(this.#declaredBytes ?? BLOCK_BYTES)
      this.#copy(this.#first)
      this.#first = EMPTY
    }
    this.#copy(piece)
  }

  whole(): Buffer {
    if (this.#block.length === 0) return this.#first
    const last = this.#block.subarray(0, this.#used)
    return this.#full.length === 0 ? last : Buffer.concat([...this.#full, last])
  }

  #copy(piece: Buffer): void {
    let copied = 0
    while (copied < piece.length) {
      if (this.#used === this.#block.length) {
        this.#full.push(this.#block)
        this.#startBlock(BLOCK_BYTES)
      }
      const bytes = piece.copy(this.#block, this.#used, copied)
      this.#used += bytes
      copied += bytes
    }
  }

  #startBlock(bytes: number): void {
    this.#block = Buffer.allocUnsafeSlow(bytes)
    this.#used = 0
  }
}
