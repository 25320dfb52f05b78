import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { MailReceiver } from './mail/receive.ts'
import { readReplays } from './replay.ts'
import { createSandbox } from './sandbox.ts'

/**
 * `node sandbox/src/main.ts [--port N] [--smtp-port N] [--seed N] [--video-tasks FILE] [--replay FOLDER]…`: prints its
 * address as one JSON line when it listens. It receives mail where a port for that is given, which can be 0 for any. The file has what `GET /control/video/kept` gave before an earlier life ended; each
 * folder has recordings, which are served under `/replay/<its name>`.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    'smtp-port': { type: 'string' },
    seed: { type: 'string', default: '1' },
    'video-tasks': { type: 'string' },
    replay: { type: 'string', multiple: true, default: [] },
  },
})
const seed = Number(values.seed)
if (!Number.isSafeInteger(seed)) throw new Error('--seed takes a whole number')

const file = values['video-tasks']
const videoTasks = file === undefined ? [] : JSON.parse(readFileSync(file, 'utf8'))
const { server, mailbox, close } = createSandbox({ seed, videoTasks, replays: readReplays(values.replay) })
server.listen(Number(values.port), '127.0.0.1')
await once(server, 'listening')
const mail = values['smtp-port'] === undefined ? undefined : await startMail(Number(values['smtp-port']))
const address = server.address()
if (address !== null && typeof address === 'object')
  console.log(JSON.stringify({ url: `http://127.0.0.1:${address.port}`, ...(mail && { smtp_url: mail.url }) }))

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => void Promise.all([close(), mail?.close()]))

/** Only who wants mail waits for what reads it. */
async function startMail(port: number): Promise<MailReceiver> {
  const { receiveMail } = await import('./mail/receive.ts')
  return receiveMail(mailbox, port)
}
