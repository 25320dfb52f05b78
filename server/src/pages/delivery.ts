import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { createRecentMap } from '../kernel/recent-map.ts'
import { acceptsGzip } from './accepts-gzip.ts'
import type { Page, SentPage } from './page.ts'
import { themed, themeIn } from './theme.ts'
import { shownTo, viewerIn } from './viewer.ts'

/** Packed pages of the website in three themes, by their bytes. */
const KEPT_BYTES = 16 * 1024 * 1024
/** What may be kept is asked for again after a minute: prices change. */
const MAX_AGE_SECONDS = 60

/** What a browser says of what it wants, can read, and has already. */
type Asked = Readonly<Record<'cookie' | 'acceptEncoding' | 'ifNoneMatch', string | undefined>> & {
  readonly query: { readonly size: number }
}

/**
 * How a page leaves: in the colours that were chosen; and where it is the same for all, with a tag by which it need not be sent twice,
 * and packed. What a page says to one person is never packed: its length would tell of what is in it. Nor is a page that was asked for
 * with a query: there are as many of them as spellings, each would be work to pack, and they would push out those that many ask for.
 */
export function createDelivery() {
  const packed = createRecentMap<string, Buffer>(KEPT_BYTES, ({ length }) => length)

  function pack(tag: string, body: string): Buffer {
    const known = packed.get(tag)
    if (known !== undefined) return known
    const made = gzipSync(body)
    packed.set(tag, made)
    return made
  }

  return (asked: Asked, page: Page): SentPage => {
    const name = viewerIn(asked.cookie)
    const own = name === undefined ? page.body : shownTo(page.body, name)
    const body = themed(own, themeIn(asked.cookie))
    if (page.isPublic !== true) return { ...page, body }
    if (own !== page.body) return { ...page, headers: { ...page.headers, 'cache-control': 'no-store' }, body }
    if (asked.query.size > 0) return { ...page, headers: { ...page.headers, 'cache-control': 'no-store' }, body }
    const tag = createHash('sha256').update(body).digest('base64url').slice(0, 27)
    const isOk = page.status === 200
    const headers = {
      ...page.headers,
      'cache-control': isOk ? `public, max-age=${MAX_AGE_SECONDS}` : 'no-store',
      vary: 'cookie, accept-encoding',
      // Weak: packed and plain bytes differ.
      etag: `W/"${tag}"`,
    }
    if (isOk && knows(asked.ifNoneMatch, tag)) return { status: 304, headers, body: '' }
    if (!acceptsGzip(asked.acceptEncoding)) return { ...page, headers, body }
    return { ...page, headers: { ...headers, 'content-encoding': 'gzip' }, body: pack(tag, body) }
  }
}

function knows(header: string | undefined, tag: string): boolean {
  const tags = (header ?? '').split(',', 20).map((one) => one.trim().replace(/^W\//, ''))
  return tags.includes(`"${tag}"`) || tags.includes('*')
}
