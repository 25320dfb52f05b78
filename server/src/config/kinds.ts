import { BlockList, isIP } from 'node:net'
import { z } from 'zod'
import { isMailAddress } from '../kernel/mail-address.ts'
import { type Nanos, usd, ZERO } from '../kernel/money.ts'
import { isMasterKey } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'

/** The kinds of values that settings have, each with what is told to whoever gives another. */

const fromText = <T extends z.ZodType>(read: (text: string) => unknown, type: T) =>
  z.preprocess((value) => (typeof value === 'string' ? read(value) : value), type)

export const integer = (least: number, most: number) => {
  const error = `must be a whole number from ${least} to ${most}`
  return fromText(
    (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
    z.int({ error }).min(least, { error }).max(most, { error }),
  )
}

export const list = <T extends z.ZodType>(item: T) =>
  fromText(
    (text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    z.array(item).max(100),
  )

export const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')], {
  error: 'must be true or false',
})

const CEILING = 'must be an amount of USD above 0, such as 5 or 0.50, or none for no ceiling'
export const ceiling = z
  .union([z.string(), z.number()], { error: CEILING })
  .transform((value, context): Nanos | null => {
    if (value === 'none') return null
    try {
      const amount = usd(String(value))
      if (amount > ZERO) return amount
    } catch {
      // Told below, as for what is not above 0.
    }
    context.addIssue({ code: 'custom', message: CEILING })
    return z.NEVER
  })

const secret = () => z.instanceof(Secret, { error: 'is missing' })

export const postgresUrl = secret().refine((url) => isPostgresUrl(url.reveal()), {
  error: 'is not the address of a PostgreSQL (in a password, write what is neither letter nor digit as %40 for @)',
})

export const masterKey = secret().refine(isMasterKey, {
  error: 'must be 32 bytes in base64: make one with openssl rand -base64 32',
})

/** By which a program shows that it is an operator's. */
export const longSecret = secret().refine((given) => /^[!-~]{32,200}$/.test(given.reveal()), {
  error: 'must be 32 to 200 characters without spaces: make one with openssl rand -base64 32',
})

export const address = z
  .string()
  .regex(/^(\[[0-9a-f:]+\]|[A-Za-z0-9.-]+):\d{1,5}$/, { error: 'must be host:port, such as 127.0.0.1:8700' })
  .transform((text) => {
    const colon = text.lastIndexOf(':')
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) }
  })
  .refine(({ port }) => port <= 65_535, { error: 'must have a port of at most 65535' })

export const segment = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, { error: 'must be lower-case letters, digits, _ and -, as in a path' })

export const segments = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}(\/[a-z0-9][a-z0-9_-]{0,62}){0,7}$/, { error: 'must be a path without its slash' })

export const network = z.string().refine(isNetwork, { error: 'must be an address or a network, such as 10.0.0.0/8' })

export const origin = z.string().refine((text) => text === '*' || isOrigin(text), {
  error: 'must be an origin, such as https://app.example.com, or *',
})

export const publicOrigin = z
  .string()
  .refine(isPublicOrigin, { error: 'must be an origin with https, such as https://api.example.com' })

export const httpOrigin = z.string().refine((text) => /^https?:/.test(text) && isOrigin(text), {
  error: 'must be an origin, such as https://issuer.example.com or http://10.0.0.7:8080',
})

/** Where agents reach their tools: a URL, with a path where there is one. */
export const publicUrl = z
  .string()
  .refine(isPublicUrl, { error: 'must be a URL with https, such as https://mcp.example.com/mcp' })

/** An amount that may be nothing. */
const AMOUNT = 'must be an amount of USD, such as 2 or 0.50, or 0 for none'
export const amount = z.union([z.string(), z.number()], { error: AMOUNT }).transform((value, context): Nanos => {
  try {
    const nanos = usd(String(value))
    if (nanos >= ZERO) return nanos
  } catch {
    // Told below, as for what is less than nothing.
  }
  context.addIssue({ code: 'custom', message: AMOUNT })
  return z.NEVER
})

export const domain = z
  .string()
  .regex(/^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+$/, { error: 'must be domains in lower case, such as example.com' })

const SMTP =
  'must be smtp://user:password@host:587 or smtps://… (in a password, write what is neither letter nor digit as %40 for @)'
export const smtpUrl = secret().refine((url) => isSmtpUrl(url.reveal()), { error: SMTP })

const SENDER = 'must be an address, such as no-reply@example.com or Example <no-reply@example.com>'
export const sender = z.string({ error: SENDER }).transform((text, context) => {
  const [, name = '', address = text] = /^([^<>"\p{C}]{0,100}?) ?<([^<>]*)>$/u.exec(text) ?? []
  if (isMailAddress(address)) return { name, address }
  context.addIssue({ code: 'custom', message: SENDER })
  return z.NEVER
})

/** An OpenID provider that people can sign in by, whose address has to be exactly what it calls itself. */
export const openidIssuer = z.strictObject({
  url: z
    .string({ error: 'is missing: the address of the issuer' })
    .refine(isPublicUrl, { error: 'must be a URL with https, such as https://login.example.com' }),
  client_id: z.string({ error: 'is missing: what the issuer calls us' }).min(1).max(500),
  client_secret: secret(),
  // What people know it as: Continue with …
  name: z.string({ error: 'is missing: what people call the issuer' }).regex(/^[^\p{C}]{1,40}$/u, {
    error: 'must be 1 to 40 characters, such as Example Login',
  }),
})

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
