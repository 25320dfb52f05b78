import { request } from 'undici'
import { freshAddress, linkIn, type Site } from './site.ts'

/** A browser without a screen: it keeps cookies, finds forms and sends them, and can be made to misbehave. */
export type Visitor = {
  readonly cookies: Map<string, string>
  readonly get: (path: string, headers?: Headers) => Promise<Answer>
  readonly post: (path: string, fields: Fields, headers?: Headers) => Promise<Answer>
  /** Opens a page, fills in the form that is sent to `action`, and sends it. */
  readonly fill: (path: string, fields: Fields, action?: string) => Promise<Answer>
}

export type Fields = Readonly<Record<string, string>>
type Headers = Readonly<Record<string, string | undefined>>

export type Answer = {
  readonly status: number
  readonly location: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly setCookies: readonly string[]
  readonly text: string
}

type From = {
  readonly address?: string /** What it takes the site to be, where that is not where it listens. */
  readonly origin?: string
}

export function createVisitor(
  { url }: Pick<Site, 'url'>,
  { address = freshAddress(), origin = url }: From = {},
): Visitor {
  const { host } = new URL(origin)
  const cookies = new Map<string, string>()

  async function ask(method: 'GET' | 'POST', path: string, headers: Headers, body?: string): Promise<Answer> {
    const all = {
      host,
      'x-forwarded-for': address,
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36',
      cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(method === 'POST' && {
        'content-type': 'application/x-www-form-urlencoded',
        origin,
        'sec-fetch-site': 'same-origin',
      }),
      ...headers,
    }
    const sent = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && value !== ''))
    const {
      statusCode,
      headers: told,
      body: answered,
    } = await request(new URL(path, url), {
      method,
      headers: sent,
      ...(body !== undefined && { body }),
    })
    const setCookies = [told['set-cookie'] ?? []].flat()
    for (const cookie of setCookies) keep(cookies, cookie)
    return {
      status: statusCode,
      location: String(told.location ?? ''),
      headers: told,
      setCookies,
      text: await answered.text(),
    }
  }

  const visitor: Visitor = {
    cookies,
    get: (path, headers = {}) => ask('GET', path, headers),
    post: (path, fields, headers = {}) => ask('POST', path, headers, new URLSearchParams(fields).toString()),
    async fill(path, fields, action = path.split('?')[0] ?? path) {
      const { text } = await visitor.get(path)
      return visitor.post(action, { ...hiddenIn(text, action), ...fields })
    },
  }
  return visitor
}

function keep(cookies: Map<string, string>, line: string): void {
  const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
  if (/; Max-Age=0(;|$)/.test(line)) cookies.delete(name)
  else cookies.set(name, value)
}

/** The hidden fields of the form on a page that is sent there. */
export function hiddenIn(page: string, action: string): Fields {
  const start = page.indexOf(`<form action="${action}"`)
  if (start === -1) throw new Error(`no form for ${action} in: ${page.slice(0, 2_000)}`)
  const form = page.slice(start, page.indexOf('</form>', start))
  const hidden = [...form.matchAll(/<input type="hidden" name="([^"]+)"[^>]* value="([^"]*)"/g)]
  return Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, decoded(value)]))
}

/** All fields of the form on a page that is sent there, as a browser sends them where nobody changes any. */
export function filledIn(page: string, action: string): Fields {
  const start = page.indexOf(`<form action="${action}"`)
  const form = page.slice(start, page.indexOf('</form>', start))
  const inputs = [...form.matchAll(/<input ([^>]*)>/g)].map(([, attributes = '']) => attributes)
  const typed = inputs.flatMap((input) => {
    const [name, value] = [/\bname="([^"]+)"/.exec(input)?.[1], /\bvalue="([^"]*)"/.exec(input)?.[1] ?? '']
    const isSent = !input.includes('type="checkbox"') || / checked\b/.test(input)
    return name === undefined || !isSent ? [] : [[name, decoded(value)] as const]
  })
  const chosen = [...form.matchAll(/<select [^>]*name="([^"]+)"[^>]*>(.*?)<\/select>/gs)].map(
    ([, name = '', options = '']) => {
      const [, value = ''] =
        /<option value="([^"]*)" selected/.exec(options) ?? /<option value="([^"]*)"/.exec(options) ?? []
      return [name, decoded(value)] as const
    },
  )
  return { ...hiddenIn(page, action), ...Object.fromEntries([...typed, ...chosen]) }
}

function decoded(text: string): string {
  return text
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}

export const PASSWORD = 'a few words of mine'

let people = 0

export function freshEmail(name = 'mira'): string {
  people += 1
  return `${name}${people}@harbour.example`
}

/** Somebody who has signed up, has opened the link in the mail, and is not signed in. */
export async function signUp(
  site: Pick<Site, 'url' | 'mailTo'>,
  { email = freshEmail(), name = 'Mira Halloran' } = {},
): Promise<string> {
  const visitor = createVisitor(site)
  const asked = await visitor.fill('/sign-up', { name, email, password: PASSWORD })
  if (asked.status !== 303) throw new Error(`sign-up: ${asked.status} ${asked.text}`)
  const { pathname } = new URL(linkIn(await site.mailTo(email), /^\/verify\//))
  const verified = await visitor.fill(pathname, {})
  if (verified.status !== 303) throw new Error(`verification: ${verified.status} ${verified.text}`)
  await visitor.fill('/sign-out', {})
  return email
}

/** Somebody's browser once they are signed in. */
export async function signIn(site: Pick<Site, 'url'>, email: string, password = PASSWORD): Promise<Visitor> {
  const visitor = createVisitor(site)
  const { status, text } = await visitor.fill('/sign-in', { email, password })
  if (status !== 303) throw new Error(`sign-in: ${status} ${text}`)
  return visitor
}
