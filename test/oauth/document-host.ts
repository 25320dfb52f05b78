import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'

export type DocumentHost = {
  readonly origin: string
  /** The certificate that vouches for it, as a file. */
  readonly certificate: string
  readonly pem: string
  /** Paths that were asked for. */
  readonly asked: string[]
  /** What is answered, by path. */
  readonly documents: Map<string, Served>
}

export type Served = {
  readonly status?: number
  readonly type?: string
  readonly location?: string
  readonly body: string
}

/** Where clients publish what they are: a host of the web, on this machine. It ends with the test file. */
export async function startDocumentHost(): Promise<DocumentHost> {
  const folder = mkdtempSync(path.join(tmpdir(), 'farebox-documents-'))
  const [key, certificate] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')]
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', certificate],
    ],
    { stdio: 'ignore' },
  )
  const asked: string[] = []
  const documents = new Map<string, Served>()
  const answer = ({ url = '' }: IncomingMessage, response: ServerResponse) => {
    asked.push(url)
    const { status = 200, type = 'application/json', location, body } = documents.get(url) ?? { status: 404, body: '' }
    response.writeHead(status, { 'content-type': type, ...(location !== undefined && { location }) }).end(body)
  }
  const pem = readFileSync(certificate, 'utf8')
  const server = createServer({ key: readFileSync(key), cert: pem }, answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    server.close()
    server.closeAllConnections()
    rmSync(folder, { recursive: true })
  })
  const { port } = server.address() as AddressInfo
  return { origin: `https://localhost:${port}`, certificate, pem, asked, documents }
}
