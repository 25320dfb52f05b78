import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { installFromDebian } from './debian.ts'

const DEBIAN_PACKAGE = 'chromium'
const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** It asks nobody but whom it is sent to; as root it can't have its own sandbox, and shared memory may be small. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--no-first-run'],
]

/** A browser without a window and with a profile of its own, which is gone when it is closed. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), headless: true, args: FLAGS })
}

/** Finds Chromium on the machine, or installs Debian's where we are root and it is missing. */
function findChromium(): string {
  const found = onThisMachine() ?? installed()
  if (found === undefined)
    throw new Error(`Chromium is missing. Install it (Debian: apt-get install ${DEBIAN_PACKAGE}).`)
  return found
}

function onThisMachine(): string | undefined {
  return (process.env.PATH ?? '')
    .split(path.delimiter)
    .flatMap((folder) => NAMES.map((name) => path.join(folder, name)))
    .find((file) => existsSync(file))
}

function installed(): string | undefined {
  return installFromDebian(DEBIAN_PACKAGE, (add) => add(DEBIAN_PACKAGE)) ? onThisMachine() : undefined
}
