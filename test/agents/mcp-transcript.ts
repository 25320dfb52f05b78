import type { Exchange } from './recorder.ts'

/** One message to the tools and its answer, as far as papers show it: no credential, no id, nothing of the machine. */
export type Said = {
  readonly asked: string
  readonly status: number
  readonly given?: unknown
  readonly told?: unknown
}

const SHOWN_MOST = 400

export function transcriptOf(exchanges: readonly Exchange[]): readonly Said[] {
  return exchanges.map(({ method, path, headers, body, status, answer }) => {
    const message = Object(jsonIn(body))
    const version = headers['mcp-protocol-version']
    const { name, arguments: given } = Object(message.params)
    const asked = [`${method} ${path}`, message.method, name, version && `(${version})`].filter(Boolean).join(' ')
    return { asked, status, ...(given !== undefined && { given }), ...toldIn(answer) }
  })
}

/** The names of the tools that each list of them had. */
export function toolsListed(exchanges: readonly Exchange[]): readonly (readonly string[])[] {
  const lists = exchanges.filter(({ body }) => Object(jsonIn(body)).method === 'tools/list')
  return lists.map(({ answer }) => resultIn(answer).tools.map((tool: { name: string }) => tool.name))
}

/** What calls of a tool were answered with. */
export function answersOf(exchanges: readonly Exchange[], tool: string): readonly Record<string, unknown>[] {
  const called = exchanges.filter(({ body }) => {
    const { method, params } = Object(jsonIn(body))
    return method === 'tools/call' && params.name === tool
  })
  return called.map(({ answer }) => Object(resultIn(answer).structuredContent))
}

function toldIn(answer: string): Pick<Said, 'told'> {
  const { tools, structuredContent, protocolVersion, supportedVersions } = resultIn(answer)
  if (Array.isArray(tools)) return { told: tools.map(({ name }) => name) }
  if (structuredContent !== undefined) return { told: shortened(structuredContent) }
  const versions = protocolVersion ?? supportedVersions
  return versions === undefined ? {} : { told: versions }
}

function shortened(value: unknown): unknown {
  const text = JSON.stringify(value)
  return text.length <= SHOWN_MOST ? value : `${text.slice(0, SHOWN_MOST)} …`
}

function resultIn(answer: string) {
  return Object(Object(jsonIn(answer.replace(/^event: message\ndata: /, ''))).result)
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
