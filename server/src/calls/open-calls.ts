import type { Id } from '../kernel/ids.ts'
import type { Call } from './call.ts'

/** What a call has reserved of its key's tokens, in the window that ends then. */
type Reserve = Pick<Call, 'credentialId'> & { tokens: number; readonly windowEndsAtMs: number }

/** The calls that this process is at, and what those of them that were begun have reserved. */
export class OpenCalls {
  readonly #calls = new Map<Id, Reserve | undefined>()
  /** By key, so that a refusal looks at its own calls alone. */
  readonly #reserves = new Map<Id, Set<Reserve>>()

  get size(): number {
    return this.#calls.size
  }

  has(id: Id): boolean {
    return this.#calls.has(id)
  }

  ids(): readonly Id[] {
    return [...this.#calls.keys()]
  }

  add(id: Id): void {
    this.#calls.set(id, undefined)
  }

  /** An open call was begun, in the window that ends then. */
  noteReserve(
    { id, credentialId, tokens }: Pick<Call, 'id' | 'credentialId' | 'tokens'>,
    windowEndsAtMs: number,
  ): void {
    if (tokens === 0 || !this.#calls.has(id)) return
    const reserve = { credentialId, tokens, windowEndsAtMs }
    this.#calls.set(id, reserve)
    const own = this.#reserves.get(credentialId)
    if (own === undefined) this.#reserves.set(credentialId, new Set([reserve]))
    else own.add(reserve)
  }

  /** An open call was extended: what it has reserved in all, as far as the window still stands in which it was begun. */
  raiseReserve(id: Id, tokens: number): void {
    const reserve = this.#calls.get(id)
    if (reserve !== undefined) reserve.tokens = tokens
  }

  delete(id: Id): void {
    const reserve = this.#calls.get(id)
    this.#calls.delete(id)
    if (reserve === undefined) return
    const own = this.#reserves.get(reserve.credentialId)
    own?.delete(reserve)
    if (own?.size === 0) this.#reserves.delete(reserve.credentialId)
  }

  /** What open calls of a key have reserved in the window that ends then. */
  reservedTokens(credentialId: Id, windowEndsAtMs: number): number {
    let tokens = 0
    for (const reserve of this.#reserves.get(credentialId) ?? [])
      if (reserve.windowEndsAtMs === windowEndsAtMs) tokens += reserve.tokens
    return tokens
  }
}
