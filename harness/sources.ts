import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'oxc-parser'
import { ROOT } from './root.ts'

type Source = {
  /** What it says to a machine: without comments. */
  readonly body: string
  /** The files that it imports, starts or reads, as far as it names them. */
  readonly names: readonly string[]
}

export type Sources = {
  /** The files that a program consists of, as paths in the project, with the programs that these start. */
  readonly of: (entry: string) => readonly string[]
  readonly hashOf: (entry: string) => string
}

/** A name in quotes that ends like a file or a folder of ours. */
const QUOTED = /(['"`])([\w./@-]+)\1/g
/** What measures is not what is measured: with it every proof would be over whenever the way of writing them down changed. */
const INSTRUMENTS = 'harness/'
const CODE = /\.(ts|sql|json)$/

/**
 * Which sources a test or a benchmark exercises. A program that is started as a process is named in the source by its path, as is
 * what is read from a file; so every name in quotes that is a file of ours counts as an import does. It is more than what runs,
 * never less, unless a path is put together from pieces.
 */
export function createSources(root = ROOT): Sources {
  const read = new Map<string, Source>()

  function sourceOf(file: string): Source {
    const known = read.get(file)
    if (known !== undefined) return known
    const source = readSource(root, file)
    read.set(file, source)
    return source
  }

  function reachedFrom(entry: string): readonly string[] {
    const found = new Set([entry])
    // A set is walked in the order of what was added, what is added meanwhile included.
    for (const file of found) for (const name of sourceOf(file).names) found.add(name)
    return [...found].toSorted()
  }

  return {
    of: (entry) => reachedFrom(entry).filter((file) => !file.startsWith(INSTRUMENTS)),
    hashOf(entry) {
      const hash = createHash('sha256')
      for (const file of this.of(entry)) hash.update(`${file}\0${sourceOf(file).body}\0`)
      return hash.digest('hex')
    },
  }
}

function readSource(root: string, file: string): Source {
  const text = readFileSync(path.join(root, file), 'utf8')
  if (file.endsWith('.sql')) return { body: text.replaceAll(/^\s*--.*$/gm, ''), names: [] }
  if (!file.endsWith('.ts')) return { body: text, names: [] }
  const body = withoutComments(file, text)
  const quoted = Array.from(body.matchAll(QUOTED), ([, , name = '']) => name)
  return { body, names: quoted.flatMap((name) => filesNamed(root, path.dirname(file), name)) }
}

function withoutComments(file: string, text: string): string {
  let body = ''
  let at = 0
  for (const { start, end } of parseSync(file, text).comments) {
    body += text.slice(at, start)
    at = end
  }
  return (body + text.slice(at)).replaceAll(/[ \t]*\n\s*/g, '\n')
}

/** Beside the file that says the name, or from the project's folder. Of a folder, its statements: migrations are read so. */
function filesNamed(root: string, folder: string, name: string): string[] {
  for (const place of [path.join(folder, name), path.normalize(name)]) {
    const full = path.join(root, place)
    if (place.startsWith('..') || place.includes('node_modules') || place.startsWith('docs') || !existsSync(full))
      continue
    if (statSync(full).isFile()) return CODE.test(place) ? [place] : []
    if (place === '.' || !place.includes('/')) continue
    return readdirSync(full)
      .filter((one) => one.endsWith('.sql'))
      .map((one) => path.join(place, one))
  }
  return []
}
