import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { descendants, isAlive } from './processes.ts'

/** A program that we started, with the means to stop, kill, pause and resume it and all that it started. */
export type Child = {
  readonly pid: number
  /** The last part of what it wrote to standard output and standard error. */
  readonly output: () => string
  readonly exited: Promise<Exit>
  readonly hasExited: () => boolean
  readonly signal: (signal: NodeJS.Signals) => void
  /** Asks it to end, and kills it where it has not within the deadline. */
  readonly stop: (signal?: NodeJS.Signals, deadlineMs?: number) => Promise<Exit>
  readonly kill: () => Promise<Exit>
  readonly pause: () => void
  readonly resume: () => void
}

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

type Options = {
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
  /** What the kernel sends it when we die ourselves, so that nothing is left behind whatever happens to us. */
  readonly signalOnOurDeath?: 'KILL' | 'INT' | 'TERM'
  readonly onLine?: (line: string) => void
  /** Leaves its standard input open, for programs that take its end for an answer. */
  readonly keepsInput?: boolean
}

const OUTPUT_LIMIT = 256 * 1024
const SETPRIV = '/usr/bin/setpriv'

export function startChild(command: string, args: readonly string[], options: Options = {}): Child {
  const { env = process.env, cwd, user, signalOnOurDeath = 'KILL', onLine, keepsInput = false } = options
  const guarded = process.platform === 'linux' && existsSync(SETPRIV)
  const identity = user ? [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'] : []
  const child = guarded
    ? spawn(SETPRIV, [...identity, `--pdeathsig=${signalOnOurDeath}`, '--', command, ...args], {
        env,
        cwd,
        stdio: 'pipe',
        // Ctrl-C in a terminal is for us alone; we stop what we started, in order.
        detached: true,
      })
    : spawn(command, args, { env, cwd, stdio: 'pipe', ...user })
  if (!keepsInput) child.stdin.end()
  const output = collectOutput(child, onLine)

  let exit: Exit | undefined
  const exited = new Promise<Exit>((resolve) => {
    child.once('error', () => resolve({ code: 127, signal: null }))
    child.once('exit', (code, signal) => resolve({ code, signal }))
  }).then((value) => {
    exit = value
    return value
  })

  const pid = child.pid ?? -1
  const signal = (name: NodeJS.Signals) => {
    if (exit === undefined) trySignal(pid, name)
  }

  return {
    pid,
    output,
    exited,
    hasExited: () => exit !== undefined,
    signal,
    async stop(name = 'SIGTERM', deadlineMs = 30_000) {
      signal(name)
      const timer = setTimeout(() => signal('SIGKILL'), deadlineMs)
      const ended = await exited
      clearTimeout(timer)
      return ended
    },
    async kill() {
      // The parent first: stopped, it can't start more of what we are about to kill.
      signal('SIGSTOP')
      const below = descendants(pid)
      signal('SIGKILL')
      for (const one of below) trySignal(one, 'SIGKILL')
      await Promise.all(below.map(untilGone))
      return exited
    },
    pause() {
      signal('SIGSTOP')
      for (const one of descendants(pid)) trySignal(one, 'SIGSTOP')
    },
    resume() {
      for (const one of descendants(pid)) trySignal(one, 'SIGCONT')
      signal('SIGCONT')
    },
  }
}

/** That only a hang meets: many start at once where tests run beside each other. */
const READY_DEADLINE_MS = 120_000

/** Starts a program that says in a line when it is ready; what `announced` reads in that line, and undefined in all others. */
export async function startAnnounced<T>(
  name: string,
  args: readonly string[],
  { announced, onLine, ...options }: Options & { readonly announced: (line: string) => T | undefined },
): Promise<{ readonly child: Child; readonly announcement: T }> {
  const ready = Promise.withResolvers<T>()
  const child = startChild(process.execPath, args, {
    ...options,
    onLine(line) {
      const announcement = announced(line)
      if (announcement === undefined) onLine?.(line)
      else ready.resolve(announcement)
    },
  })
  const failure = child.exited.then(() => undefined)
  const late = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), READY_DEADLINE_MS).unref()
  })
  const announcement = await Promise.race([ready.promise, failure, late])
  if (announcement !== undefined) return { child, announcement }
  await child.kill()
  throw new Error(`the ${name} did not become ready:\n${child.output()}`)
}

/** The last part of what was written. */
export function keptOutput(): { readonly add: (text: string) => void; readonly text: () => string } {
  let kept = ''
  return {
    add(text) {
      kept = (kept + text).slice(-OUTPUT_LIMIT)
    },
    text: () => kept,
  }
}

function collectOutput(child: ChildProcess, onLine: ((line: string) => void) | undefined): () => string {
  const kept = keptOutput()
  for (const stream of [child.stdout, child.stderr]) {
    let rest = ''
    stream?.setEncoding('utf8').on('data', (text: string) => {
      kept.add(text)
      if (!onLine) return
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) onLine(line)
    })
  }
  return kept.text
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended already, which is what every signal but SIGCONT leads to.
  }
}

async function untilGone(pid: number): Promise<void> {
  for (let tries = 0; tries < 500 && isAlive(pid); tries += 1) await new Promise((resolve) => setTimeout(resolve, 10))
}
