import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { type Label, type LabelFile, OWN_LABEL } from './label.ts'

/** What pages are made of beside their text: style sheets, the fonts, the icon, and whose name they carry. */
export type Assets = {
  readonly stylesheets: readonly string[]
  /** Those of the console, and its script: null where nobody has built it, and then pages do without. */
  readonly console: { readonly stylesheets: readonly string[]; readonly script: string | null }
  readonly font: string
  readonly icon: { readonly href: string; readonly type: string }
  /** The address of an operator's logo. */
  readonly logo: string | null
  readonly label: Label
  readonly files: ReadonlyMap<string, Asset>
}

/** `gzipped` is what most browsers are sent; null where it would be no smaller. */
export type Asset = { readonly type: string; readonly bytes: Buffer; readonly gzipped: Buffer | null }

export const ASSETS_PATH = '/assets'
/** Beside this file in the source, and beside the bundle where the build copies them. */
const FOLDER = path.join(import.meta.dirname, 'assets')
const STYLES = ['tokens.css', 'base.css', 'site.css']
const CONSOLE_STYLES = ['tokens.css', 'base.css', 'console.css']
/** Made of console/islands/ by the build. */
const SCRIPT = 'islands.js'
const ARCHIVO = 'archivo-latin-wght-normal.woff2'
const FONTS = {
  [ARCHIVO]: '@fontsource-variable/archivo',
  'ibm-plex-mono-latin-400-normal.woff2': '@fontsource/ibm-plex-mono',
  'ibm-plex-mono-latin-600-normal.woff2': '@fontsource/ibm-plex-mono',
}
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.woff2': 'font/woff2',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
}
const PLAIN = new Set(['.css', '.js', '.svg'])

/** Reads them once. Each is called by its content, so that a browser may keep it for ever. */
export function loadAssets(label: Label = OWN_LABEL): Assets {
  const files = new Map<string, Asset>()

  function add({ name, bytes }: LabelFile): string {
    const { name: stem, ext } = path.parse(name)
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 12)
    const file = `${stem}-${hash}${ext}`
    files.set(file, {
      type: TYPES[ext] ?? 'application/octet-stream',
      bytes,
      gzipped: PLAIN.has(ext) ? gzipSync(bytes, { level: 9 }) : null,
    })
    return `${ASSETS_PATH}/${file}`
  }

  const fonts = new Map(
    Object.entries(FONTS).map(
      ([file, from]) => [file, add({ name: file, bytes: readFileSync(fontOf(from, file)) })] as const,
    ),
  )
  const own = label.styles === null ? [] : [add(label.styles)]
  const sheet = (name: string, parts: readonly string[]) => {
    const styles = parts.map((file) => readFileSync(path.join(FOLDER, file), 'utf8')).join('\n')
    const placed = [...fonts].reduce((text, [file, url]) => text.replace(`fonts/${file}`, url), styles)
    return [add({ name, bytes: Buffer.from(placed) }), ...own]
  }
  const script = path.join(FOLDER, SCRIPT)
  const icon = label.icon ?? { name: 'favicon.svg', bytes: readFileSync(path.join(FOLDER, 'favicon.svg')) }
  return {
    stylesheets: sheet('pages.css', STYLES),
    console: {
      stylesheets: sheet('console.css', CONSOLE_STYLES),
      script: existsSync(script) ? add({ name: SCRIPT, bytes: readFileSync(script) }) : null,
    },
    font: fonts.get(ARCHIVO) ?? '',
    icon: { href: add(icon), type: TYPES[path.extname(icon.name)] ?? 'image/svg+xml' },
    logo: label.logo === null ? null : add(label.logo),
    label,
    files,
  }
}

function fontOf(from: string, file: string): string {
  return fileURLToPath(import.meta.resolve(`${from}/files/${file}`))
}
