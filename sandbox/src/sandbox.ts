import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

/** One request that the sandbox was asked, in the order of arrival. */
export type JournalEntry = { readonly method: string; readonly path: string }

export type Sandbox = { readonly server: Server; readonly journal: () => readonly JournalEntry[] }

const JOURNAL_LIMIT = 100_000

/** The simulated upstreams: a server of its own that each vendor's wire format will be added to. */
export function createSandbox(): Sandbox {
  const journal: JournalEntry[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const [path = '/'] = (request.url ?? '/').split('?')
    if (path === '/livez') return answer(response, 200, { ok: true })
    if (path === '/journal') return answer(response, 200, { entries: journal })
    journal.push({ method: request.method ?? '', path })
    if (journal.length > JOURNAL_LIMIT) journal.shift()
    return answer(response, 404, { error: `The sandbox has no upstream at ${path}.` })
  })
  return { server, journal: () => journal }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
