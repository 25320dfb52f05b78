import { html } from '../../kernel/html.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { Library } from '../guides/library.ts'
import type { KeptPrices } from '../kept-prices.ts'
import type { Shell } from '../shell.ts'

type Parts = {
  readonly shell: Shell
  readonly library: Pick<Library, 'guides' | 'sections'>
  readonly prices: Pick<KeptPrices, 'now'>
  readonly siteUrl: string | undefined
  readonly baseUrl: string | undefined
  readonly mcpUrl: string | undefined
  /** The operator's name for all of it. */
  readonly name: string
}

const PAGES = ['/', '/catalogue', '/models', '/docs', '/reference', '/proof', '/status']

/** What programs ask a website for: llms.txt, sitemap.xml and robots.txt. */
export function machineRoutes(parts: Parts): readonly PageRoute[] {
  const { shell, siteUrl } = parts
  const text = (path: string, type: string, bodyOf: () => string): PageRoute => ({
    method: 'GET',
    path,
    answer: () => shell.text({ type: `${type}; charset=utf-8`, body: bodyOf() }),
  })
  const robots = text('/robots.txt', 'text/plain', () => robotsOf(siteUrl))
  const llms = text('/llms.txt', 'text/plain', () => llmsOf(parts))
  // A sitemap has whole addresses: there is none where nobody said what they are.
  if (siteUrl === undefined) return [robots, llms]
  return [robots, llms, text('/sitemap.xml', 'application/xml', () => sitemapOf(parts, siteUrl))]
}

function sitemapOf({ library: { guides }, prices, shell }: Parts, siteUrl: string): string {
  const sold = prices.now().sold.map(({ id }) => `/catalogue/${id}`)
  const paths = [...PAGES.filter(shell.isShown), ...guides.map(({ path }) => path), ...sold]
  const urls = paths.map((path) => html`<url><loc>${new URL(path, siteUrl).href}</loc></url>\n`)
  return String(html`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${urls}</urlset>
`)
}

/** Forms and what belongs to one person are no pages for a search engine. */
function robotsOf(siteUrl: string | undefined): string {
  const closed = ['/search', '/sign-in', '/sign-up', '/account', '/oauth', '/api'].map((path) => `Disallow: ${path}\n`)
  const map = siteUrl === undefined ? '' : `\nSitemap: ${new URL('/sitemap.xml', siteUrl).href}\n`
  return `User-agent: *\n${closed.join('')}${map}`
}

/** For models that read a website: what it is, and every guide as Markdown. */
function llmsOf({ library, prices, siteUrl, baseUrl, mcpUrl, name }: Parts): string {
  const { guides, sections: readers } = library
  const at = (path: string) => (siteUrl === undefined ? path : new URL(path, siteUrl).href)
  const guideOf = new Map(guides.map((guide) => [guide.name, guide]))
  const sections = readers.map(({ title, guides: listed }) => {
    const lines = listed.map(({ name: one, title: shown, note }) => {
      const path = guideOf.get(one)?.path ?? ''
      return `- [${shown}](${at(`${path}.md`)}): ${note}`
    })
    return `## ${title}\n\n${lines.join('\n')}\n`
  })
  const operations = prices.now().sold.map(({ id, summary }) => `- [${id}](${at(`/catalogue/${id}`)}): ${summary}`)
  return `# ${name}

> A metered gateway: models and data by the call, with a hard ceiling on spend. The price of a call is known before it is paid, and a call that does not fit into the budget is refused before anything is asked.

${baseUrl === undefined ? '' : `- Calls: ${baseUrl}\n`}${mcpUrl === undefined ? '' : `- Tools for agents (MCP): ${mcpUrl}\n`}- Contract (OpenAPI): ${at('/api/contracts/version')}
- What is sold, as JSON: ${at('/api/sales-api-data')}

${sections.join('\n')}
## Operations

${operations.join('\n')}
`
}
