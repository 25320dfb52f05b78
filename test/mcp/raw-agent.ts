import { request } from 'undici'

export type RawAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** The message of the answer, where it has one. */
  readonly message: Record<string, unknown>
}

type Ask = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export const MODERN = '2026-07-28'
export const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Asks as no client of the protocol would have to. A body that is a text is sent as it is. */
export async function askRaw(
  url: string,
  secret: string,
  { method = 'POST', headers = {}, body }: Ask,
): Promise<RawAnswer> {
  const answer = await request(url, {
    method: method as 'POST',
    headers: {
      ...(secret !== '' && { authorization: `Bearer ${secret}` }),
      accept: 'application/json, text/event-stream',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await answer.body.text()
  return { status: answer.statusCode, headers: answer.headers, text, message: messageIn(text) }
}

function messageIn(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text.replace(/^event: message\ndata: /, '')))
  } catch {
    return {}
  }
}

/** A call of a tool in the newest version. */
export function callBody(name: string, given: unknown, meta: object = {}, id: string | number = 1) {
  return {
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: given, _meta: { ...ENVELOPE, ...meta } },
  }
}

export function callHeaders(name: string): Record<string, string> {
  return { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', 'mcp-name': name }
}

/** What a tool answered. */
export async function callRaw(url: string, secret: string, name: string, given: unknown, meta: object = {}) {
  const { message, ...answer } = await askRaw(url, secret, {
    headers: callHeaders(name),
    body: callBody(name, given, meta),
  })
  const { structuredContent, content, isError, _meta } = Object(message.result)
  return {
    ...answer,
    message,
    structured: Object(structuredContent),
    content,
    isError: isError === true,
    meta: Object(_meta),
  }
}

/** The same request as arguments of a tool. */
export function argumentsOf({
  path,
  body,
}: {
  readonly path: string
  readonly body?: unknown
}): Record<string, unknown> {
  const { pathname, searchParams } = new URL(path, 'http://localhost')
  if (body === undefined) return Object.fromEntries(searchParams)
  const [, model] = /^\/v1beta\/models\/(.*):[a-zA-Z]+$/.exec(pathname) ?? []
  return { ...(model !== undefined && { model }), ...Object(body) }
}
