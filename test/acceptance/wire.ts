import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What came over the wire, without what clients make of it. */
export type Wired = {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Asks for a target byte for byte, which no client does that builds URLs. */
export function wire(url: string, secret: string, target: string): Promise<Wired> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const asked = request(
      { hostname, port, path: target, headers: { authorization: `Bearer ${secret}` } },
      async (answer) => {
        const chunks: Buffer[] = []
        for await (const chunk of answer) chunks.push(chunk)
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) })
      },
    )
    asked.once('error', reject)
    asked.end()
  })
}

export type Scripted = {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Buffer
}

/** An upstream that answers what a test tells it to, for what the sandbox has no words. */
export async function startScriptedUpstream() {
  let next: Scripted = {}
  const asked: { method: string; target: string; headers: Readonly<Record<string, unknown>> }[] = []
  const server = createServer(({ method = '', url = '', headers }, response) => {
    asked.push({ method, target: url, headers })
    const { status = 200, headers: given = {}, body = '' } = next
    for (const [name, value] of Object.entries(given)) response.setHeader(name, value)
    response.writeHead(status).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    answer(scripted: Scripted) {
      next = scripted
    },
    stop() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}
