import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { GUIDES, type Listed, pathOfGuide, type Readers } from './list.ts'
import { createLinkOf, type LinkOf, type Rendered, renderMarkdown } from './markdown.ts'

export type Guide = Listed & {
  readonly path: string
  readonly isForOperators: boolean
  /** As it is in the repository, with the names of headers and the addresses that this installation has. */
  readonly source: () => string
  readonly rendered: () => Rendered
}

export type Library = {
  readonly guides: readonly Guide[]
  /** The same by who reads them. */
  readonly sections: readonly Readers[]
  /** Drawings of the guides, by the address at which they are shown. */
  readonly drawings: ReadonlyMap<string, string>
  /** docs/, wherever it is. */
  readonly folder: string
}

/** Beside the bundle where the build copies it; in the repository otherwise. */
export function docsFolder(): string {
  const built = path.join(import.meta.dirname, 'docs')
  return existsSync(built) ? built : path.join(import.meta.dirname, '../../../../docs')
}

/** Whose word the guides have in names of headers, as they are in the repository. */
const WRITTEN_FOR = 'Farebox'

/** Names of headers as the installation spells them: a cap or a quote under another word is refused. */
function inWord(source: string, provider: string): string {
  return source
    .replaceAll(`X-${WRITTEN_FOR}-`, () => `X-${provider}-`)
    .replaceAll(`x-${WRITTEN_FOR.toLowerCase()}-`, () => `x-${provider.toLowerCase()}-`)
}

type Options = Addresses & {
  /** Whether what only operators need is shown. */
  readonly hasOperators?: boolean
  /** Guides that are written from what is so now, in place of their files, by their names. */
  readonly written?: Readonly<Record<string, () => string>>
}

/** Undefined where nobody said. */
type Addresses = { readonly baseUrl?: string | undefined; readonly siteUrl?: string | undefined }

/** The addresses of the installation in place of the words for them, in the forms in which samples have them. */
function atAddresses(source: string, { baseUrl, siteUrl }: Addresses): string {
  const filled = [
    ['BASE_URL', baseUrl],
    ['SITE_URL', siteUrl],
  ] as const
  return filled.reduce(
    (text, [word, address]) =>
      address === undefined
        ? text
        : text
            .replaceAll(new RegExp(`process\\.env\\.${word} \\?\\? ''`, 'g'), () => `'${address}'`)
            .replaceAll(`os.environ["${word}"]`, () => `"${address}"`)
            .replaceAll(new RegExp(`\\$?\\b${word}\\b`, 'g'), () => address),
    source,
  )
}

const DRAWING = /\.svg$/

/** Reads them once, as they are part of the program. Each is rendered when somebody first asks for it. */
export function openLibrary(provider = WRITTEN_FOR, folder = docsFolder(), options: Options = {}): Library {
  const { hasOperators = true, written = {} } = options
  const sections = GUIDES.filter(({ isForOperators = false }) => hasOperators || !isForOperators)
  const drawings = new Map(
    ['', 'performance'].flatMap((below) =>
      readdirSync(path.join(folder, below))
        .filter((file) => DRAWING.test(file))
        .map((file) => {
          const name = path.posix.join(below, file)
          return [pathOfGuide(name), readFileSync(path.join(folder, name), 'utf8')] as const
        }),
    ),
  )
  const titles = new Map(sections.flatMap(({ guides }) => guides.map(({ name, title }) => [name, title] as const)))
  const linkOf = createLinkOf((file) => {
    const name = file.replace(/\.md$/, '')
    const title = file.endsWith('.md') ? titles.get(name) : undefined
    if (title !== undefined) return { href: pathOfGuide(name), title }
    return drawings.has(pathOfGuide(file)) ? { href: pathOfGuide(file) } : undefined
  })
  const all = sections.flatMap(({ guides, isForOperators = false }) =>
    guides.map((one) => ({ ...one, isForOperators })),
  )
  const guides = all.map((listed): Guide => {
    const { name, isForOperators } = listed
    // What operators type has addresses of its own.
    const spelt = (text: string) => inWord(isForOperators ? text : atAddresses(text, options), provider)
    const write = written[name]
    const file = spelt(readFileSync(path.join(folder, `${name}.md`), 'utf8'))
    const source = write === undefined ? () => file : () => spelt(write())
    return { ...listed, path: pathOfGuide(name), source, rendered: renderedOnce(source, linkOf) }
  })
  return { guides, sections, drawings, folder }
}

/** Rendered when somebody first asks for it, and again when it says something else. */
function renderedOnce(source: () => string, linkOf: LinkOf): () => Rendered {
  let of: string | undefined
  let rendered: Rendered | undefined
  return () => {
    const text = source()
    if (rendered === undefined || text !== of) rendered = renderMarkdown(text, linkOf)
    of = text
    return rendered
  }
}
