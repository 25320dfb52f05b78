import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** What pages are made of beside their text: one style sheet, the fonts and the icon. */
export type Assets = {
  readonly stylesheet: string
  readonly font: string
  readonly icon: string
  readonly files: ReadonlyMap<string, Asset>
}

type Asset = { readonly type: string; readonly bytes: Buffer }

export const ASSETS_PATH = '/assets'
/** Beside this file in the source, and beside the bundle where the build copies them. */
const FOLDER = path.join(import.meta.dirname, 'assets')
const STYLES = ['tokens.css', 'base.css', 'site.css']
const ARCHIVO = 'archivo-latin-wght-normal.woff2'
const FONTS = {
  [ARCHIVO]: '@fontsource-variable/archivo',
  'ibm-plex-mono-latin-400-normal.woff2': '@fontsource/ibm-plex-mono',
  'ibm-plex-mono-latin-600-normal.woff2': '@fontsource/ibm-plex-mono',
}
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.woff2': 'font/woff2',
  '.svg': 'image/svg+xml',
}

/** Reads them once. Each is called by its content, so that a browser may keep it for ever. */
export function loadAssets(): Assets {
  const files = new Map<string, Asset>()

  function add(name: string, bytes: Buffer): string {
    const { name: stem, ext } = path.parse(name)
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 12)
    const file = `${stem}-${hash}${ext}`
    files.set(file, { type: TYPES[ext] ?? 'application/octet-stream', bytes })
    return `${ASSETS_PATH}/${file}`
  }

  const fonts = new Map(
    Object.entries(FONTS).map(([file, from]) => [file, add(file, readFileSync(fontOf(from, file)))] as const),
  )
  const styles = STYLES.map((file) => readFileSync(path.join(FOLDER, file), 'utf8')).join('\n')
  const placed = [...fonts].reduce((text, [file, url]) => text.replace(`fonts/${file}`, url), styles)
  return {
    stylesheet: add('pages.css', Buffer.from(placed)),
    font: fonts.get(ARCHIVO) ?? '',
    icon: add('favicon.svg', readFileSync(path.join(FOLDER, 'favicon.svg'))),
    files,
  }
}

function fontOf(from: string, file: string): string {
  return fileURLToPath(import.meta.resolve(`${from}/files/${file}`))
}
