import type { Child, Exit } from './child.ts'
import { needsProcess } from './lane.ts'

/** Something in this process with the face of a process. */
export function childHere(output: () => string, stop: () => Promise<void>): Child {
  const exited = Promise.withResolvers<Exit>()
  let stopping: Promise<Exit> | undefined
  let hasExited = false
  async function end(): Promise<Exit> {
    const exit: Exit = { code: 0, signal: null }
    await stop()
    hasExited = true
    exited.resolve(exit)
    return exit
  }
  return {
    // No signal can be sent to it.
    pid: Number.NaN,
    output,
    exited: exited.promise,
    hasExited: () => hasExited,
    signal: (name) => needsProcess(name),
    stop() {
      stopping ??= end()
      return stopping
    },
    kill: async () => needsProcess('kill -9'),
    pause: () => needsProcess('a pause'),
    resume: () => needsProcess('a pause'),
  }
}
