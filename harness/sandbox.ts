import assert from 'node:assert/strict'
import path from 'node:path'
import { request } from 'undici'
import type { Fault } from '../sandbox/src/control.ts'
import type { JournalEntry, JournalPage } from '../sandbox/src/journal.ts'
import type { ReceivedMail } from '../sandbox/src/mail/received-mail.ts'
import type { UpstreamName } from '../sandbox/src/upstream.ts'
import { createAttemptsTally } from './attempts.ts'
import { type Child, startAnnounced } from './child.ts'
import { childHere } from './child-here.ts'
import { isShared } from './lane.ts'
import { ROOT } from './root.ts'
import { PATIENCE_MS, until } from './until.ts'

/** The simulated upstreams in a process of their own. */
export type SandboxProcess = Child & {
  readonly url: string
  /** The base address of a vendor that deviates, such as `deviant('openai', 'folds-case', 'slow-first-byte=50')`. */
  readonly deviant: (upstream: UpstreamName, ...words: readonly string[]) => string
  /** What it was asked since it started or its journal was emptied, or from entry number `since` on. */
  readonly journal: (since?: number) => Promise<readonly JournalEntry[]>
  readonly emptyJournal: () => Promise<void>
  /** Sets directives for the next requests of an upstream, such as `['status=503']`. */
  readonly fault: (
    upstream: Fault['upstream'],
    directives: readonly string[],
    times?: number,
    credential?: string,
  ) => Promise<void>
  /** No faults wait any more. */
  readonly clearFaults: () => Promise<void>
  /** Until requests have taken all of them, so that whoever asks next meets none of them. */
  readonly faultsTaken: () => Promise<void>
  /** Where mail is handed over; undefined where it was not told to receive any. */
  readonly smtpUrl: string | undefined
  /** The mail that it received, the newest first; for one address where it is given. */
  readonly mail: (to?: string) => Promise<readonly ReceivedMail[]>
  /** Sets directives for the next mail, such as `['status=451']`; with `to`, for receivers whose address has that in it. */
  readonly mailFault: (directives: readonly string[], times?: number, to?: string) => Promise<void>
}

type Options = {
  readonly seed?: number
  readonly port?: number
  /** It receives mail there; 0 for any port. */
  readonly smtpPort?: number
  /** A file with the video tasks of an earlier life, with which it goes on. */
  readonly videoTasks?: string | undefined
  /** Folders of recordings, each served under `/replay/<its name>`. */
  readonly replay?: readonly string[]
}

/** One that nobody judges: for whoever calls it by hand, or judges what it was asked by itself. */
export async function startBareSandbox(options: Options = {}): Promise<SandboxProcess> {
  const { child, url, smtpUrl } = await (isShared ? startHere(options) : startProcess(options))
  return {
    ...child,
    url,
    deviant: (upstream, ...words) => `${url}/deviant/${words.join('+')}/${upstream}`,
    journal: (since = 0) => readJournal(url, since),
    async emptyJournal() {
      await (await request(`${url}/journal`, { method: 'DELETE' })).body.dump()
    },
    fault: (upstream, directives, times = 1, credential) =>
      order(`${url}/control`, { upstream, directives, times, credential }),
    async clearFaults() {
      await (await request(`${url}/control`, { method: 'DELETE' })).body.dump()
    },
    faultsTaken: () =>
      until(async () => !(await haveFaults(url)), PATIENCE_MS, 'that its faults are taken').then(() => {}),
    smtpUrl,
    async mail(to) {
      const query = to === undefined ? '' : `?to=${encodeURIComponent(to)}`
      const answer = (await (await request(`${url}/mail.json${query}`)).body.json()) as {
        mail: readonly ReceivedMail[]
      }
      return answer.mail
    },
    mailFault: (directives, times = 1, to) => order(`${url}/control/mail`, { directives, times, to }),
  }
}

type Started = { readonly child: Child; readonly url: string; readonly smtpUrl: string | undefined }

/** In this process, as the server is where many test files share one. */
async function startHere({ seed = 1, port = 0, smtpPort, videoTasks, replay = [] }: Options): Promise<Started> {
  const { startSimulation } = await import('../sandbox/src/simulation.ts')
  const { url, smtpUrl, close } = await startSimulation({ seed, port, smtpPort, videoTasks, replay })
  return { child: childHere(() => '', close), url, smtpUrl }
}

async function startProcess({ seed = 1, port = 0, smtpPort, videoTasks, replay = [] }: Options): Promise<Started> {
  const program = path.join(ROOT, 'sandbox/src/main.ts')
  const known = videoTasks === undefined ? [] : ['--video-tasks', videoTasks]
  const recorded = replay.flatMap((folder) => ['--replay', folder])
  const mailed = smtpPort === undefined ? [] : ['--smtp-port', String(smtpPort)]
  const args = [program, '--port', String(port), '--seed', String(seed), ...mailed, ...known, ...recorded]
  const { child, announcement } = await startAnnounced<{ readonly url: string; readonly smtp_url?: string }>(
    'sandbox',
    args,
    { announced: (line) => (line.startsWith('{"url"') ? JSON.parse(line) : undefined) },
  )
  return { child, url: announcement.url, smtpUrl: announcement.smtp_url }
}

/** Asks for something to go wrong, and says what is wrong with that, if anything is. */
async function order(url: string, what: Readonly<Record<string, unknown>>): Promise<void> {
  const answer = await request(url, { method: 'POST', body: JSON.stringify(what) })
  const said = await answer.body.text()
  if (answer.statusCode !== 200) throw new Error(said)
}

async function haveFaults(url: string): Promise<boolean> {
  const waiting = (await (await request(`${url}/control`)).body.json()) as { readonly faults: readonly Fault[] }
  return waiting.faults.length > 0
}

/**
 * One that holds all that it is asked against what operations say that a call may ask: it fails to stop where a call has asked
 * more. What the newest 200,000 requests do not show it has not seen, nor what came after a pause that it was killed in.
 */
export async function startSandbox(options: Options = {}): Promise<SandboxProcess> {
  const sandbox = await startBareSandbox(options)
  const tally = createAttemptsTally()
  let isPaused = false
  let seen = 0

  async function look(): Promise<void> {
    if (isPaused || sandbox.hasExited()) return
    const entries = await sandbox.journal(seen)
    tally.add(entries)
    seen = (entries.at(-1)?.n ?? seen - 1) + 1
  }

  /** It ends in any case. */
  async function ended<T>(end: () => Promise<T>): Promise<T> {
    const failure = await look().then(
      () => undefined,
      (error: unknown) => new Error('what the sandbox was asked could not be read', { cause: error }),
    )
    const exit = await end()
    if (failure !== undefined) throw failure
    assert.deepEqual(tally.problems(), [], 'calls that asked upstreams more than their operations say')
    return exit
  }

  return {
    ...sandbox,
    stop: (...how) => ended(() => sandbox.stop(...how)),
    kill: () => ended(sandbox.kill),
    async emptyJournal() {
      await look()
      await sandbox.emptyJournal()
    },
    pause() {
      isPaused = true
      sandbox.pause()
    },
    resume() {
      isPaused = false
      sandbox.resume()
    },
  }
}

/** Page by page, to the end as it is when we get there. */
async function readJournal(url: string, since: number): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = []
  for (let next = since; ; ) {
    const page = (await (await request(`${url}/journal?since=${next}`)).body.json()) as JournalPage
    entries.push(...page.entries)
    if (page.entries.length === 0) return entries
    next = page.next
  }
}
