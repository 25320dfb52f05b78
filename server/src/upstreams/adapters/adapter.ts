import type { Reply } from '../../catalogue/price.ts'

/** What a caller asked for, parsed and as it came. */
export type Asked = {
  readonly input: unknown
  /** The query string without its question mark, byte for byte. */
  readonly query: string
  readonly rawBody: Buffer | null
}

/** What is sent upstream beside the path and our credential. */
export type Outgoing = { readonly query: string; readonly body: Buffer | null }

/** An upstream's answer as it came. */
export type Incoming = Reply & {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** What the caller is answered. */
export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
}

/** How an operation's request becomes an upstream's, and the upstream's answer becomes ours. */
export type Adapter = {
  readonly ask: (asked: Asked) => Outgoing
  /** Reads of a large answer what `answer` and the price look at, without building all of it in one turn. */
  readonly readLarge: (body: Buffer) => Promise<unknown>
  /**
   * Undefined where the upstream's answer is not what it promises, so that the caller can be given nothing. Tokens are those that
   * are charged, where that is known already.
   */
  readonly answer: (reply: Incoming, asked: Asked, tokens?: number) => Answer | undefined
}
