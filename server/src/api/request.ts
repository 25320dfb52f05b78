import type { Visitor } from '../people/visitor.ts'

/** A request to a route of an API, without anything of the framework. */
export type ApiRequest = {
  /** The request's id. */
  readonly id: string
  readonly visitor: Visitor
  readonly method: string
  /** The path alone, as it came. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly query: unknown
  /** The body as it is parsed; undefined where there is none. */
  readonly readBody: () => unknown
  /** By its name in lower case. What is sent twice is joined, and believed of nobody. */
  readonly header: (name: string) => string | undefined
}

export type ApiResponse = {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; a text or a stream of another type as it is; nothing where left out. */
  readonly body?: unknown
  readonly type?: string
}
