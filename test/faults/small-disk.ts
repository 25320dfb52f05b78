import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { temporaryFolder } from '../../harness/postgres.ts'
import { isAlive } from '../../harness/processes.ts'

/** A file system of its own for PostgreSQL, which can be filled and emptied. */
export type SmallDisk = {
  readonly folder: string
  /** Takes all the room there is, and what comes free while it lasts. */
  readonly fill: () => void
  readonly empty: () => void
  readonly remove: () => void
}

const PREFIX = 'farebox-faults-disk-'
const SIZE_MB = 320
const TAKE_EVERY_MS = 20

/** Undefined where none can be mounted: that takes root and CAP_SYS_ADMIN. */
export function mountSmallDisk(): SmallDisk | undefined {
  removeAbandoned()
  const folder = temporaryFolder(`${PREFIX}${process.pid}-`)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE_MB}m,mode=755`, 'tmpfs', folder], { stdio: 'pipe' })
  } catch {
    rmSync(folder, { recursive: true })
    return undefined
  }
  const file = path.join(folder, 'filler')
  let filling: { readonly descriptor: number; readonly timer: NodeJS.Timeout } | undefined

  function empty(): void {
    if (filling === undefined) return
    clearInterval(filling.timer)
    closeSync(filling.descriptor)
    rmSync(file, { force: true })
    filling = undefined
  }

  return {
    folder,
    fill() {
      if (filling !== undefined) return
      const descriptor = openSync(file, 'w')
      const take = () => takeRoom(descriptor)
      filling = { descriptor, timer: setInterval(take, TAKE_EVERY_MS) }
      take()
    },
    empty,
    remove() {
      empty()
      execFileSync('umount', ['--lazy', folder])
      rmSync(folder, { recursive: true })
    },
  }
}

/** Whoever was killed could not unmount its disk; its number in the folder's name tells that it is gone. */
function removeAbandoned(): void {
  const mounted = existsSync('/proc/mounts') ? readFileSync('/proc/mounts', 'utf8') : ''
  for (const [folder, pid] of mounted.matchAll(new RegExp(`/\\S*${PREFIX}(\\d+)-\\S*`, 'g'))) {
    if (isAlive(Number(pid))) continue
    execFileSync('umount', ['--lazy', folder])
    rmSync(folder, { recursive: true, force: true })
  }
}

function takeRoom(descriptor: number): void {
  for (let size = 1024 * 1024; size >= 4_096; ) {
    try {
      writeSync(descriptor, Buffer.alloc(size))
    } catch {
      size /= 4
    }
  }
}
