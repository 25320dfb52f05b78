import { readFileSync } from 'node:fs'
import path from 'node:path'
import { filesOfCheckout } from '../../harness/checkout-files.ts'
import { renderMarkdown } from '../../server/src/site/guides/markdown.ts'

/** A Markdown file: where its links lead, and the anchors that others can link to. */
export type Paper = { readonly links: readonly string[]; readonly anchors: ReadonlySet<string> }

/** All that git knows or will know of a checkout, by paths from its root: files, and papers among them. */
export type Checkout = { readonly files: ReadonlySet<string>; readonly papers: ReadonlyMap<string, Paper> }

/** Forms that GitHub fills in, and no papers. */
const FORMS = '.github/'

export function readCheckout(root: string): Checkout {
  const files = filesOfCheckout(root)
  const papers = files
    .filter((file) => file.endsWith('.md') && !file.startsWith(FORMS))
    .map((file) => [file, readPaper(readFileSync(path.join(root, file), 'utf8'))] as const)
  return { files: new Set(files), papers: new Map(papers) }
}

/** Read by what renders the website's guides, so that an anchor is the same here and there. */
export function readPaper(source: string): Paper {
  const links: string[] = []
  const { parts } = renderMarkdown(source, (href) => {
    links.push(href)
    return undefined
  })
  return { links, anchors: new Set(parts.map(({ id }) => id)) }
}

const ELSEWHERE = /^(https?|mailto):/

/** Each relative link that leads nowhere, as "paper → link: why". */
export function brokenLinks({ files, papers }: Checkout): readonly string[] {
  const folders = new Set([...files].flatMap(foldersAbove))
  return [...papers].flatMap(([file, { links }]) =>
    links
      .filter((link) => !ELSEWHERE.test(link))
      .flatMap((link) => {
        const [target = '', anchor] = link.split('#', 2)
        const place = target === '' ? file : placeOf(file, target)
        const why = files.has(place)
          ? whyNoAnchor(papers.get(place), anchor)
          : folders.has(place)
            ? undefined
            : `there is no ${place}`
        return why === undefined ? [] : [`${file} → ${link}: ${why}`]
      }),
  )
}

function whyNoAnchor(paper: Paper | undefined, anchor: string | undefined): string | undefined {
  if (anchor === undefined) return undefined
  return paper?.anchors.has(decodeURIComponent(anchor)) ? undefined : `there is no heading #${anchor}`
}

function foldersAbove(file: string): readonly string[] {
  const parts = file.split('/').slice(0, -1)
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'))
}

/** The path from the root; a slash at its end makes no difference. One that begins with a slash is the website's, and no file. */
function placeOf(file: string, target: string): string {
  if (target.startsWith('/')) return target
  return path.posix.join(path.posix.dirname(file), decodeURIComponent(target)).replace(/\/$/, '')
}

/** Compares an index with the papers beside it: which it does not list, and which it lists more than once. */
export function unevenlyListed({ files, papers }: Checkout, index: string): readonly string[] {
  const folder = path.posix.dirname(index)
  const listed = (papers.get(index)?.links ?? []).map((link) => placeOf(index, link.split('#', 1)[0] ?? ''))
  return [...files]
    .filter((file) => path.posix.dirname(file) === folder && file.endsWith('.md') && file !== index)
    .flatMap((file) => {
      const times = listed.filter((place) => place === file).length
      if (times === 1) return []
      return [
        times === 0 ? `${index} does not list ${file}: add a line for it` : `${index} lists ${file} ${times} times`,
      ]
    })
}
