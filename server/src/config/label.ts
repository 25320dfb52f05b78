import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { AA_TEXT, contrastOf } from '../kernel/contrast.ts'
import { isMailAddress } from '../kernel/mail-address.ts'
import { kind } from './described.ts'
import { list } from './kinds.ts'

/** What an operator shows of itself on pages: docs/operating.md. */

const LOGO_MOST_BYTES = 65_536
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** A drawing may draw, and nothing else: what could run, ask for something or change what is drawn is not taken. */
const ACTIVE =
  /<\s*(?:script|foreignObject|iframe|animate|set|handler|listener)|\son\w+\s*=|<!(?:DOCTYPE|ENTITY)|<\?xml-stylesheet|javascript:|@import|(?:href|src)\s*=\s*["'](?!#)|url\(\s*["']?(?!#)/i

const LOGO = `a PNG or a plain SVG of at most ${LOGO_MOST_BYTES} bytes`
const logoError = (message: string) => `${message}: give ${LOGO}`

const logoFile = z
  .string()
  .min(1)
  .max(4_096)
  .transform((file, context): { readonly name: string; readonly bytes: Buffer } => {
    const problem = (message: string) => {
      context.addIssue({ code: 'custom', message: logoError(message) })
      return z.NEVER
    }
    let bytes: Buffer
    try {
      if (statSync(file).size > LOGO_MOST_BYTES) return problem('is too large')
      bytes = readFileSync(file)
    } catch {
      return problem('is a file that cannot be read')
    }
    const kind = path.extname(file).toLowerCase()
    if (kind === '.png') {
      return bytes.subarray(0, PNG.length).equals(PNG) ? { name: 'logo.png', bytes } : problem('is not a PNG')
    }
    const text = bytes.toString('utf8')
    if (kind !== '.svg' || !/<svg[\s>]/.test(text)) return problem('is neither a PNG nor an SVG')
    if (ACTIVE.test(text)) return problem('has scripts, styles from elsewhere or links, which no logo needs')
    return { name: 'logo.svg', bytes }
  })

/** A file, read when the program starts. */
export const logo = kind(logoFile, { type: 'path of a file', bounds: LOGO })

/** As pages have them (`tokens.css`): what stands behind text and buttons. */
export const PAPERS = { light: ['#ffffff', '#f5f6f7'], dark: ['#0e1013', '#15181c'] } as const

/** Examples that keep their own rule. */
export const COLOURS = { light: '#1d4fd7', dark: '#8ab4f8' } as const

/** A colour of links, buttons and the focus that can be read on every paper of its scheme. */
export const accent = (scheme: keyof typeof PAPERS) =>
  kind(
    z
      .string()
      .regex(/^#[0-9a-fA-F]{6}$/, { error: `must be a colour such as ${COLOURS[scheme]}` })
      .transform((colour) => colour.toLowerCase())
      .superRefine((colour, context) => {
        const least = Math.min(...PAPERS[scheme].map((paper) => contrastOf(colour, paper)))
        if (least >= AA_TEXT) return
        const advice = scheme === 'light' ? 'choose a darker one' : 'choose a lighter one'
        const message = `has a contrast of ${least.toFixed(2)} on the ${scheme} pages, and text needs ${AA_TEXT}: ${advice}`
        context.addIssue({ code: 'custom', message })
      }),
    {
      type: 'colour',
      bounds: `a colour such as ${COLOURS[scheme]}, with a contrast of at least ${AA_TEXT} on ${scheme} pages`,
    },
  )

const PLAIN = /^[^\p{Cc}\p{Cf}<>]{1,60}$/u
const NAME = 'a name of at most 60 characters, without < and >'

export const siteName = kind(z.string().regex(PLAIN, { error: `must be ${NAME}` }), { type: 'text', bounds: NAME })

const isHttps = (text: string) =>
  URL.canParse(text) && new URL(text).protocol === 'https:' && new URL(text).username === ''

const LINK = 'an address that begins with https://'
const LINK_LENGTH = 500
export const link = kind(
  z
    .string()
    .max(LINK_LENGTH)
    .refine(isHttps, { error: `must be ${LINK}` }),
  {
    type: 'URL',
    bounds: `${LINK}, at most ${LINK_LENGTH} characters`,
  },
)

const SUPPORT = `a mail address, or ${LINK}`
/** Where people get help: a mailbox, or a page. */
export const support = kind(
  z
    .string()
    .max(LINK_LENGTH)
    .refine((text) => isHttps(text) || isMailAddress(text), { error: `must be ${SUPPORT}` }),
  { type: 'mail address or URL', bounds: `${SUPPORT}, at most ${LINK_LENGTH} characters` },
)

/** Pages of the website that an operator shows or leaves out, beside those of what is sold and the guides for callers. */
export const SHOWN = ['operator_guides', 'proof', 'reference'] as const
export type Shown = (typeof SHOWN)[number]
const NONE = 'none'
const WORDS = `${SHOWN.join(', ')}; or ${NONE}, alone`

export const shown = kind(
  list(z.enum([...SHOWN, NONE], { error: `must be one of ${WORDS}` }))
    .refine((all) => !all.includes(NONE) || all.length === 1, { error: 'names none and others: none stands alone' })
    .transform((all) => all.filter((one): one is Shown => one !== NONE)),
  { type: 'list of choices', bounds: `each one of ${WORDS}` },
)
