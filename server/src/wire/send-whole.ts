import type { IncomingMessage, OutgoingHttpHeader, ServerResponse } from 'node:http'

/** What is left of the framework where an answer is written past it. */
export type RawReply = {
  readonly raw: ServerResponse
  readonly request: { readonly id: string; readonly raw: IncomingMessage }
  /** From here on the framework answers nothing. */
  readonly hijack: () => unknown
}

export type Whole = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
}

/** Every answer says by both names which request it is to. */
export function idHeaders(id: string): Record<string, string> {
  return { 'X-Request-ID': id, 'request-id': id }
}

/**
 * Answers in one write, past the framework: what it would do with an answer that is whole, in the bytes and the headers that it
 * is to have, costs more than the answer.
 */
export function sendWhole(reply: RawReply, { status, headers, body }: Whole): void {
  const list: OutgoingHttpHeader[] = []
  for (const some of [idHeaders(reply.request.id), headers])
    for (const name of Object.keys(some)) list.push(name, some[name] ?? '')
  // What nobody gave a name is bytes, which is what HTTP lets every reader assume.
  if (body.length > 0 && headers['content-type'] === undefined) list.push('content-type', 'application/octet-stream')
  if (status !== 204 && status !== 304) list.push('content-length', Buffer.byteLength(body))
  // What can't be written is told as any other failure: until here the framework still answers.
  reply.raw.writeHead(status, list)
  reply.hijack()
  reply.raw.end(body)
}
