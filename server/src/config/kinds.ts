import { BlockList, isIP } from 'node:net'
import { z } from 'zod'
import { isMailAddress } from '../kernel/mail-address.ts'
import { type Nanos, usd, ZERO } from '../kernel/money.ts'
import { isMasterKey } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import { kind, kindOf } from './described.ts'

/** The kinds of values that settings have, each with what is told to whoever gives another. */

const must = (bounds: string) => ({ error: `must be ${bounds}` })

const fromText = <T extends z.ZodType>(read: (text: string) => unknown, type: T) =>
  z.preprocess((value) => (typeof value === 'string' ? read(value) : value), type)

/** `bounds` is for where there is more to say of them than two numbers. */
export const integer = (least: number, most: number, bounds = `${least} to ${most}`) => {
  const { error } = must(`a whole number from ${least} to ${most}`)
  const type = fromText(
    (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
    z.int({ error }).min(least, { error }).max(most, { error }),
  )
  return kind(type, { type: 'integer', bounds })
}

const LIST_MOST = 100

export const list = <T extends z.ZodType>(item: T, bounds?: string) => {
  const type = fromText(
    (text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    z.array(item).max(LIST_MOST),
  )
  const each = kindOf(item) ?? { type: 'text', bounds: 'any' }
  return kind(type, {
    type: `list of ${each.type}s`,
    bounds: bounds ?? `at most ${LIST_MOST}; each: ${each.bounds}`,
  })
}

/** One of some words. */
export const choice = <const Words extends readonly [string, ...string[]]>(words: Words, error: string) =>
  kind(z.enum(words, { error }), { type: 'choice', bounds: `one of ${words.join(', ')}` })

/** A text whose form is checked. */
const shaped = (pattern: RegExp, bounds: string, missing?: string) =>
  kind(z.string(missing === undefined ? undefined : { error: missing }).regex(pattern, must(bounds)), {
    type: 'text',
    bounds,
  })

export const flag = kind(
  z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')], must('true or false')),
  { type: 'boolean', bounds: 'true or false' },
)

const CEILING = 'an amount of USD above 0, such as 5 or 0.50, or none for no ceiling'
export const ceiling = kind(
  z.union([z.string(), z.number()], must(CEILING)).transform((value, context): Nanos | null => {
    if (value === 'none') return null
    try {
      const amount = usd(String(value))
      if (amount > ZERO) return amount
    } catch {
      // Told below, as for what is not above 0.
    }
    context.addIssue({ code: 'custom', message: must(CEILING).error })
    return z.NEVER
  }),
  { type: 'amount in USD', bounds: CEILING },
)

const secret = () => z.instanceof(Secret, { error: 'is missing' })
const ENCODED = 'percent-encode special characters in the password: %40 for @'

export const postgresUrl = kind(
  secret().refine((url) => isPostgresUrl(url.reveal()), { error: `is not the address of a PostgreSQL (${ENCODED})` }),
  { type: 'URL', bounds: `postgres://user:password@host:5432/database (${ENCODED})`, isSecret: true },
)

const MASTER_KEY = '32 bytes in base64: make one with openssl rand -base64 32'
export const masterKey = kind(secret().refine(isMasterKey, must(MASTER_KEY)), {
  type: 'key',
  bounds: MASTER_KEY,
  isSecret: true,
})

const LONG_SECRET = '32 to 200 characters without spaces: make one with openssl rand -base64 32'
/** By which a program shows that it is an operator's. */
export const longSecret = kind(
  secret().refine((given) => /^[!-~]{32,200}$/.test(given.reveal()), must(LONG_SECRET)),
  { type: 'text', bounds: LONG_SECRET, isSecret: true },
)

const ADDRESS = 'host:port, such as 127.0.0.1:8700'
export const address = kind(
  z
    .string()
    .regex(/^(\[[0-9a-f:]+\]|[A-Za-z0-9.-]+):\d{1,5}$/, must(ADDRESS))
    .transform((text) => {
      const colon = text.lastIndexOf(':')
      return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) }
    })
    .refine(({ port }) => port <= 65_535, { error: 'must have a port of at most 65535' }),
  { type: 'host and port', bounds: ADDRESS },
)

export const segment = shaped(
  /^[a-z0-9][a-z0-9_-]{0,62}$/,
  'lower-case letters, digits, _ and -, as in a path, at most 63 characters',
)

export const segments = shaped(
  /^[a-z0-9][a-z0-9_-]{0,62}(\/[a-z0-9][a-z0-9_-]{0,62}){0,7}$/,
  'a path without its slash, of at most 8 segments',
)

/** As headers and pages have it. */
export const word = shaped(/^[A-Za-z][A-Za-z0-9]{0,31}$/, 'one word of letters and digits, at most 32')

export const hostName = shaped(/^[a-z0-9._-]{1,253}$/, 'names in lower case, such as metrics.example.com')

const NETWORK = 'an address or a network, such as 10.0.0.0/8'
export const network = kind(z.string().refine(isNetwork, must(NETWORK)), { type: 'network', bounds: NETWORK })

const PROXY = `${NETWORK}; or none, alone`
/** Empty where somebody says that there are none. */
export const proxies = kind(
  list(z.string().refine((text) => text === 'none' || isNetwork(text), must(PROXY)))
    .refine((all) => !all.includes('none') || all.length === 1, { error: 'names none and others: none stands alone' })
    .transform((all) => all.filter((one) => one !== 'none')),
  { type: 'list of networks', bounds: `at most ${LIST_MOST}; each: ${PROXY}` },
)

const ORIGIN = 'an origin, such as https://app.example.com, or *'
export const origin = kind(
  z.string().refine((text) => text === '*' || isOrigin(text), must(ORIGIN)),
  { type: 'origin', bounds: ORIGIN },
)

export const publicOrigin = (example: string) => {
  const bounds = `an origin with https, such as ${example}`
  return kind(z.string().refine(isPublicOrigin, must(bounds)), {
    type: 'origin',
    bounds: `${bounds}; http on this machine alone`,
  })
}

const HTTP_ORIGIN = 'an origin, such as https://issuer.example.com or http://10.0.0.7:8080'
export const httpOrigin = kind(
  z.string().refine((text) => /^https?:/.test(text) && isOrigin(text), must(HTTP_ORIGIN)),
  { type: 'origin', bounds: HTTP_ORIGIN },
)

const urlLike = (example: string, missing?: string) => {
  const bounds = `a URL with https, such as ${example}`
  const text = z.string(missing === undefined ? undefined : { error: missing })
  return kind(text.refine(isPublicUrl, must(bounds)), { type: 'URL', bounds: `${bounds}; http on this machine alone` })
}

/** Where agents reach their tools: a URL, with a path where there is one. */
export const publicUrl = urlLike('https://mcp.example.com/mcp')

/** An amount that may be nothing. */
const AMOUNT = 'an amount of USD, such as 2 or 0.50, or 0 for none'
export const amount = kind(
  z.union([z.string(), z.number()], must(AMOUNT)).transform((value, context): Nanos => {
    try {
      const nanos = usd(String(value))
      if (nanos >= ZERO) return nanos
    } catch {
      // Told below, as for what is less than nothing.
    }
    context.addIssue({ code: 'custom', message: must(AMOUNT).error })
    return z.NEVER
  }),
  { type: 'amount in USD', bounds: AMOUNT },
)

export const domain = shaped(/^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+$/, 'domains in lower case, such as example.com')

export const modelName = kind(z.string().min(1).max(200), { type: 'text', bounds: '1 to 200 characters' })

const SMTP = `smtp://user:password@host:587 or smtps://… (${ENCODED})`
export const smtpUrl = kind(
  secret().refine((url) => isSmtpUrl(url.reveal()), must(SMTP)),
  { type: 'URL', bounds: SMTP, isSecret: true },
)

const SENDER = 'an address, such as no-reply@example.com or Example <no-reply@example.com>'
export const sender = kind(
  z.string(must(SENDER)).transform((text, context) => {
    const [, name = '', address = text] = /^([^<>"\p{C}]{0,100}?) ?<([^<>]*)>$/u.exec(text) ?? []
    if (isMailAddress(address)) return { name, address }
    context.addIssue({ code: 'custom', message: must(SENDER).error })
    return z.NEVER
  }),
  { type: 'mail address', bounds: SENDER },
)

/** Of an OpenID provider: its address, what it knows us as, and what people know it as. */
export const issuerUrl = urlLike('https://login.example.com', 'is missing: the address of the issuer')
export const issuerClientId = kind(z.string({ error: 'is missing: what the issuer calls us' }).min(1).max(500), {
  type: 'text',
  bounds: '1 to 500 characters',
})
export const issuerClientSecret = kind(secret(), { type: 'text', bounds: 'as the issuer gave it', isSecret: true })
export const issuerName = shaped(
  /^[^\p{C}]{1,40}$/u,
  '1 to 40 characters, such as Example Login',
  'is missing: what people call the issuer',
)

function isNetwork(text: string): boolean {
  const [host = '', bits] = text.split('/')
  const family = isIP(host)
  if (family === 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return false
  try {
    new BlockList().addSubnet(host, Number(bits ?? (family === 4 ? 32 : 128)), family === 4 ? 'ipv4' : 'ipv6')
    return true
  } catch {
    return false
  }
}

function isPostgresUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || !['postgres:', 'postgresql:'].includes(url.protocol)) return false
  // The host of a socket in a folder can stand in the query alone.
  return url.hostname !== '' || (url.searchParams.get('host') ?? '') !== ''
}

/** Nobody may read on the way what people and their programs send. On this machine nobody is on the way. */
function isPublicOrigin(text: string): boolean {
  return isOrigin(text) && /^https:|^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:|$)/.test(text)
}

function isPlainUrl({ username, password, search, hash }: URL): boolean {
  return username + password + search + hash === ''
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

function isPublicUrl(text: string): boolean {
  return URL.canParse(text) && isPublicOrigin(new URL(text).origin) && isPlainUrl(new URL(text))
}

/** Settings in the query would be nodemailer's, which could turn off what protects a connection. */
function isSmtpUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') return false
  if (!['', '/'].includes(url.pathname) || url.search + url.hash !== '') return false
  try {
    return (
      decodeURIComponent(url.username + url.password) !== undefined && (url.username === '') === (url.password === '')
    )
  } catch {
    return false
  }
}
