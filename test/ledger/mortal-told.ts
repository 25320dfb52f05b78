import { closeSync, openSync, readSync } from 'node:fs'
import type { Id } from '../../server/src/kernel/ids.ts'

/** What a caller knows of its call, by the last that it was told. */
export type Fate = {
  readonly id: Id
  readonly accountId: Id
  readonly credentialId: Id
  readonly scope: string
  /** `invoked` and `ending` mean that it waits for an answer. */
  state: 'invoked' | 'refused' | 'faulted' | 'begun' | 'ending' | 'ended'
  /** What it asked to be charged, null for a void. */
  asked: bigint | null
  charged: bigint | null
  outcome: string
}

export type Taking = { readonly id: Id; readonly ownerId: Id; readonly atMs: number }

/** Reads what a mortal wrote, from where the last look ended. What it was killed in the middle of writing, nobody was told. */
export class ToldFile {
  readonly fates = new Map<Id, Fate>()
  /** Calls of others that it swept, and calls of its own that it disowned. */
  readonly swept: Taking[] = []
  readonly lost: Taking[] = []
  /** How often it noticed that it had renewed its lease late. */
  lateRenewals = 0
  isReady = false
  lastChargedAtMs = 0
  readonly #descriptor: number
  readonly #buffer = Buffer.alloc(1 << 20)
  #position = 0
  #rest = ''

  constructor(file: string) {
    this.#descriptor = openSync(file, 'a+')
  }

  read(): this {
    for (;;) {
      const length = readSync(this.#descriptor, this.#buffer, 0, this.#buffer.length, this.#position)
      if (length === 0) return this
      this.#position += length
      const lines = (this.#rest + this.#buffer.toString('utf8', 0, length)).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.#note(line.split(' '))
    }
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  #note([at = '', word = '', id = '', ...rest]: readonly string[]): void {
    const atMs = Number(at)
    const [first = '', second = '', third = ''] = rest
    switch (word) {
      case 'ready':
        this.isReady = true
        return
      case 'stopped':
        return
      case 'swept':
        this.swept.push({ id, ownerId: first, atMs })
        return
      case 'lost':
        this.lost.push({ id, ownerId: first, atMs })
        return
      case 'late':
        this.lateRenewals += 1
        return
      case 'invoked':
        this.fates.set(id, {
          id,
          accountId: first,
          credentialId: second,
          scope: third,
          state: word,
          asked: null,
          charged: null,
          outcome: '',
        })
        return
    }
    const fate = this.fates.get(id)
    if (fate === undefined) throw new Error(`a mortal tells of a call that it never made: ${word} ${id}`)
    if (word === 'begun') fate.state = word
    else if (word === 'refused' || word === 'faulted') Object.assign(fate, { state: word, outcome: first })
    else if (word === 'ending') Object.assign(fate, { state: word, asked: first === 'null' ? null : BigInt(first) })
    else if (word === 'ended') {
      Object.assign(fate, { state: word, charged: BigInt(first), outcome: second })
      this.lastChargedAtMs = atMs
    } else throw new Error(`a mortal says ${word}, which is no word of its`)
  }
}
