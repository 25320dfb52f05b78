import pg from 'pg'
import type { Secret } from '../kernel/secret.ts'
import { CHANGES_CHANNEL } from './change-log.ts'
import { connectionSettings, createSockets } from './connection.ts'

type Parts = {
  readonly url: Secret
  /** The longest wait for the connection and for each answer. */
  readonly answerTimeoutMs: number
  /** Called when there is something to read, and when the connection is lost, which the next read will notice. */
  readonly hint: () => void
}

/** The one connection of a change feed. It listens, and nothing else in the process has to wait for it. */
export function createChangeConnection({ url, answerTimeoutMs, hint }: Parts) {
  const sockets = createSockets()
  let connected: pg.Client | undefined

  async function connect(): Promise<pg.Client> {
    const settings = connectionSettings({
      url,
      sockets,
      applicationName: 'farebox changes',
      connectTimeoutMs: answerTimeoutMs,
      queryTimeoutMs: answerTimeoutMs,
    })
    const client = new pg.Client(settings)
    client.on('error', hint)
    client.on('notification', hint)
    await client.connect()
    await client.query(`listen ${CHANGES_CHANNEL}`)
    return client
  }

  return {
    /** The connection that there is, or a new one. */
    async client(): Promise<pg.Client> {
      connected ??= await connect()
      return connected
    },
    drop(): void {
      connected = undefined
      sockets.destroy()
    },
  }
}
