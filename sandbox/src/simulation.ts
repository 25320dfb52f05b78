import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readReplays } from './replay.ts'
import { createSandbox } from './sandbox.ts'

type Options = {
  readonly seed: number
  readonly port: number
  /** An address of this machine; in a container all of them. */
  readonly host?: string | undefined
  /** It receives mail there; 0 for any port. */
  readonly smtpPort?: number | undefined
  /** A file with the video tasks of an earlier life, as `GET /control/video/kept` gave them. */
  readonly videoTasks?: string | undefined
  /** Folders of recordings, each served under `/replay/<its name>`. */
  readonly replay: readonly string[]
}

type Simulation = {
  readonly url: string
  readonly smtpUrl: string | undefined
  readonly close: () => Promise<void>
}

/** The sandbox on ports of loopback, unless told otherwise. */
export async function startSimulation({
  seed,
  port,
  host = '127.0.0.1',
  smtpPort,
  videoTasks: file,
  replay,
}: Options): Promise<Simulation> {
  const videoTasks = file === undefined ? [] : JSON.parse(readFileSync(file, 'utf8'))
  const { server, mailbox, close } = createSandbox({ seed, videoTasks, replays: readReplays(replay) })
  server.listen(port, host)
  await once(server, 'listening')
  // Only who wants mail waits for what reads it.
  const mail =
    smtpPort === undefined ? undefined : await (await import('./mail/receive.ts')).receiveMail(mailbox, smtpPort)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the sandbox listens on no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    smtpUrl: mail?.url,
    async close() {
      await Promise.all([close(), mail?.close()])
    },
  }
}
