import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { type MailFault, NO_FAULT } from './mail-faults.ts'
import type { Mailbox } from './mailbox.ts'
import { readMail } from './read-mail.ts'
import type { Envelope } from './received-mail.ts'

export type MailReceiver = { readonly url: string; readonly close: () => Promise<void> }

const MESSAGE_BYTES = 1_048_576
const CLIENTS = 1000
const GRACE_MS = 500

class Refusal extends Error {
  readonly responseCode: number

  constructor(responseCode: number) {
    super('the sandbox was told to')
    this.responseCode = responseCode
  }
}

/** Takes mail for anybody by SMTP, without TLS and without a password, into the mailbox. */
export async function receiveMail(mailbox: Mailbox, port: number): Promise<MailReceiver> {
  const sockets = new Map<number, Socket>()
  const faults = new Map<string, MailFault>()
  const server = new SMTPServer({
    name: 'sandbox',
    banner: 'The sandbox takes mail for anybody.',
    size: MESSAGE_BYTES,
    rejectOversized: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    maxAllowedUnauthenticatedCommands: false,
    maxClients: CLIENTS,
    maxRecipients: 100,
    closeTimeout: GRACE_MS,
    hideENHANCEDSTATUSCODES: false,
    logger: false,
    onRcptTo({ address }, session, done) {
      const fault = mailbox.faults.take(address)
      faults.set(session.id, fault)
      if (fault.reset === 'before-data') cut(session)
      else if (fault.status !== undefined && fault.at === 'rcpt') done(new Refusal(fault.status))
      else done()
    },
    onData(stream, session, done) {
      take(stream, session).then(
        (answer) => answer !== 'silence' && done(answer),
        (error: unknown) => done(error instanceof Error ? error : new Error('unreadable')),
      )
    },
    onClose: ({ id }) => void faults.delete(id),
  })
  // Who leaves in the middle of something is no news.
  server.on('error', () => {})
  server.server.on('connection', (socket) => {
    const { remotePort = 0 } = socket
    sockets.set(remotePort, socket)
    socket.once('close', () => sockets.delete(remotePort))
  })

  function cut({ remotePort }: SMTPServerSession): void {
    sockets.get(remotePort)?.destroy()
  }

  async function take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<Refusal | null | 'silence'> {
    const envelope = envelopeOf(session)
    const raw = await collect(stream)
    const { status, at, delayMs, reset, hangs } = faults.get(session.id) ?? NO_FAULT
    faults.delete(session.id)
    if (delayMs > 0) await delay(delayMs)
    if (status !== undefined && at === 'data') return new Refusal(status)
    const acknowledged = reset === undefined && !hangs
    mailbox.add({ at_ms: Date.now(), envelope, ...(await readMail(raw)), acknowledged })
    if (reset !== undefined) cut(session)
    return acknowledged ? null : 'silence'
  }

  const listening = server.listen(port, '127.0.0.1')
  await once(listening, 'listening')
  const address = listening.address()
  return {
    url: `smtp://127.0.0.1:${typeof address === 'object' ? address?.port : port}`,
    async close() {
      for (const socket of sockets.values()) socket.destroy()
      await new Promise<void>((resolve) => server.close(resolve))
    },
  }
}

function envelopeOf({ envelope: { mailFrom, rcptTo } }: SMTPServerSession): Envelope {
  return { from: mailFrom === false ? '' : mailFrom.address, to: rcptTo.map(({ address }) => address) }
}

/** What is beyond the limit is read and dropped; the server refuses it. */
async function collect(stream: SMTPServerDataStream): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of stream) {
    bytes += piece.length
    if (bytes <= MESSAGE_BYTES) pieces.push(piece)
  }
  return Buffer.concat(pieces)
}
