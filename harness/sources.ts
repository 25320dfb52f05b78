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
/** This file names folders to tell them apart, not to read them. */
const HERE = 'harness/sources.ts'

/**
 * Which sources a test or a benchmark exercises. A program that is started as a process is named in the source by its path, as is
 * what is read from a file; so every name in quotes that is a file of ours counts as an import does. It is more than what runs,
 * never less, unless a path is put together from pieces. With the files of the checkout, files of any kind count, and a folder
 * stands for all that is below it but tests: nothing reads these unless it names them.
 */
export function createSources(root = ROOT, checkout: readonly string[] = []): Sources {
  const read = new Map<string, Source>()
  const sourcesOf = new Map<string, readonly string[]>()
  const named = checkout.length === 0 ? codeNamed : anyFileNamed(checkout)

  function sourceOf(file: string): Source {
    const known = read.get(file)
    if (known !== undefined) return known
    const source = readSource(root, file, named)
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
    of(entry) {
      const known = sourcesOf.get(entry) ?? reachedFrom(entry).filter((file) => !file.startsWith(INSTRUMENTS))
      sourcesOf.set(entry, known)
      return known
    },
    hashOf(entry) {
      const hash = createHash('sha256')
      for (const file of this.of(entry)) hash.update(`${file}\0${sourceOf(file).body}\0`)
      return hash.digest('hex')
    },
  }
}

type Named = (root: string, folder: string, name: string) => readonly string[]

function readSource(root: string, file: string, named: Named): Source {
  const text = readFileSync(path.join(root, file), 'utf8')
  if (file.endsWith('.sql')) return { body: text.replaceAll(/^\s*--.*$/gm, ''), names: [] }
  if (!file.endsWith('.ts') || file === HERE) return { body: text, names: [] }
  const body = withoutComments(file, text)
  const quoted = Array.from(body.matchAll(QUOTED), ([, , name = '']) => name)
  return { body, names: quoted.flatMap((name) => named(root, path.dirname(file), name)) }
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
function codeNamed(root: string, folder: string, name: string): string[] {
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

/** Of a word without a slash, what lies beside the file that says it; from the project's folder, these alone: the others are words of the code. */
const FOLDERS_BY_NAME: ReadonlySet<string> = new Set(['docs', 'examples', 'deploy'])
/** The website of every installation reads documents. Whether they can be read, each test that starts one says; what they say, the tests of papers. */
const READS_DOCUMENTS = /^(server|client|sandbox)\/src\//

function anyFileNamed(checkout: readonly string[]): Named {
  const below = new Map<string, string[]>()
  for (const file of checkout.filter((one) => !one.endsWith('.test.ts')))
    for (let folder = path.dirname(file); folder !== '.'; folder = path.dirname(folder))
      below.set(folder, [...(below.get(folder) ?? []), file])
  const files = new Set(checkout)
  return (_root, folder, name) => {
    const fromRoot = path.normalize(name).replace(/\/$/, '')
    const isWord = !name.includes('/') && !name.includes('.')
    const places = [path.join(folder, name), ...(isWord && !FOLDERS_BY_NAME.has(name) ? [] : [fromRoot])]
    return places.flatMap((place) => {
      if (place === '.' || place.startsWith('..') || (place.startsWith('docs') && READS_DOCUMENTS.test(`${folder}/`)))
        return []
      return files.has(place) ? [place] : (below.get(place) ?? [])
    })
  }
}
