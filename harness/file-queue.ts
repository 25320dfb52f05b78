import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** A list of test files in a folder, from which several processes take one after the other, each file once. */
export type FileQueue = { readonly folder: string; readonly remove: () => void }

const LIST = 'files.json'

export function createFileQueue(files: readonly string[]): FileQueue {
  const folder = mkdtempSync(path.join(tmpdir(), 'farebox-queue-'))
  writeFileSync(path.join(folder, LIST), JSON.stringify(files))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export function* takeFrom(folder: string): Generator<string> {
  const files = JSON.parse(readFileSync(path.join(folder, LIST), 'utf8')) as string[]
  for (const [place, file] of files.entries()) if (isFirst(path.join(folder, String(place)))) yield file
}

/** To make a file that is not there succeeds once, whoever else tries. */
function isFirst(claim: string): boolean {
  try {
    closeSync(openSync(claim, 'wx'))
    return true
  } catch {
    return false
  }
}
