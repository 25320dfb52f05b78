import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { buildClient } from '../../harness/build-client.ts'
import { npm } from '../../harness/npm.ts'
import { ROOT } from '../../harness/root.ts'
import { blocksIn } from '../documents/blocks.ts'

/** The client as somebody has it who installed its package into a new folder. */
export type Installed = {
  readonly folder: string
  /** What npm packed, built, before it was installed. */
  readonly packed: string
  /** The names of the files in the package. */
  readonly files: readonly string[]
  readonly write: (name: string, text: string) => string
  readonly remove: () => void
}

type Pack = readonly [{ readonly filename: string; readonly files: readonly { readonly path: string }[] }]

export async function installClient(): Promise<Installed> {
  const root = mkdtempSync(path.join(tmpdir(), 'farebox-client-'))
  const [packed, folder] = [path.join(root, 'package'), path.join(root, 'program')]
  for (const made of [packed, folder]) mkdirSync(made)
  await buildClient(path.join(packed, 'dist'))
  for (const file of ['package.json', 'README.md']) cpSync(path.join(ROOT, 'client', file), path.join(packed, file))
  const [pack] = JSON.parse(npm(packed, 'pack', '--json')) as Pack
  writeFileSync(path.join(folder, 'package.json'), '{"name": "program", "private": true, "type": "module"}')
  // Nothing else comes with it, so that nobody has to be asked.
  npm(folder, 'install', '--offline', '--no-audit', '--no-fund', path.join(packed, pack.filename))
  return {
    folder,
    packed,
    files: pack.files.map((file) => file.path).toSorted(),
    write(name, text) {
      const file = path.join(folder, name)
      writeFileSync(file, text)
      return file
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

type Example = { readonly name: string; readonly program: string; readonly prints: readonly string[] }

const ADDRESS = "new Farebox({ baseUrl: 'http://127.0.0.1:8700', apiKey: 'fb_test_…' })"

/** The programs of the client's README, each whole, for a gateway and a key. */
export function examplesOfReadme(gateway: { readonly url: string; readonly key: string }): readonly Example[] {
  const text = readFileSync(path.join(ROOT, 'client/README.md'), 'utf8')
  const own = `new Farebox({ baseUrl: '${gateway.url}', apiKey: '${gateway.key}' })`
  const beginning = `import { Farebox } from '@farebox/client'\nconst farebox = ${own}\n`
  const blocks = blocksIn('client/README.md', text).filter(({ language }) => language === 'ts')
  return blocks.map(({ code: block }, at) => ({
    name: `example-${at + 1}.ts`,
    program: block.includes(ADDRESS) ? block.replace(ADDRESS, own) : `${beginning}${block}`,
    prints: [...block.matchAll(/\/\/ prints (.*)$/gm)].map(([, line = '']) => line),
  }))
}
