const BLOCK_BYTES = 65_536
/** Beyond so much, what came before and all that may come have one block: to join them at the end would take it all twice. */
const JOINED_BYTES = 1_048_576
const EMPTY = Buffer.alloc(0)

/**
 * A body that is kept whole. Pieces are copied together as they come: a piece of a byte costs a hundred in bookkeeping, and
 * an upstream can send a body in as many pieces as it has bytes.
 */
export class CollectedBody {
  readonly #declaredBytes: number | undefined
  readonly #mostBytes: number
  /** The first piece, which is often the only one. */
  #first: Buffer = EMPTY
  #full: Buffer[] = []
  #block: Buffer = EMPTY
  #used = 0

  constructor(declaredBytes: number | undefined, mostBytes = 0) {
    this.#declaredBytes = declaredBytes
    this.#mostBytes = mostBytes
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
        if (this.#full.length * BLOCK_BYTES === JOINED_BYTES && this.#mostBytes > JOINED_BYTES) this.#join()
        else this.#startBlock(BLOCK_BYTES)
      }
      const bytes = piece.copy(this.#block, this.#used, copied)
      this.#used += bytes
      copied += bytes
    }
  }

  /** Pages of the block that nothing is written to are not used. */
  #join(): void {
    const before = this.#full
    this.#full = []
    this.#startBlock(this.#mostBytes)
    for (const block of before) this.#used += block.copy(this.#block, this.#used)
  }

  #startBlock(bytes: number): void {
    this.#block = Buffer.allocUnsafeSlow(bytes)
    this.#used = 0
  }
}
