import { contrastOf } from '../kernel/contrast.ts'
import { html } from '../kernel/html.ts'
import { type Label, type LabelFile, OWN_LABEL, OWN_NAME } from './label.ts'

/** What an operator has set, checked. */
export type LabelSettings = {
  readonly name: string
  readonly logo?: LabelFile | undefined
  /** Both or none. */
  readonly accent?: Accent | undefined
  readonly terms?: string | undefined
  readonly privacy?: string | undefined
  readonly imprint?: string | undefined
  readonly support?: string | undefined
}

type Accent = { readonly light: string; readonly dark: string }

export function makeLabel({ name, logo, accent, terms, privacy, imprint, support }: LabelSettings): Label {
  const legal = [
    ['Terms', terms],
    ['Privacy', privacy],
    ['Imprint', imprint],
  ] as const
  return {
    name,
    logo: logo ?? null,
    icon: name === OWN_NAME ? OWN_LABEL.icon : iconOf(name, accent?.light ?? INK),
    styles: accent === undefined ? null : { name: 'label.css', bytes: Buffer.from(stylesOf(accent)) },
    legal: legal.flatMap(([title, href]) => (href === undefined ? [] : [{ title, href }])),
    support: support === undefined ? null : { title: 'Support', href: isPage(support) ? support : `mailto:${support}` },
  }
}

const isPage = (address: string) => address.startsWith('https://')
const INK = '#14161a'
const WHITE = '#ffffff'
/** What can be read on a colour: one of the two always can. */
const inkOn = (colour: string) => (contrastOf(colour, WHITE) >= contrastOf(colour, INK) ? WHITE : INK)

/** The first letter, in the operator's colour. */
function iconOf(name: string, colour: string): LabelFile {
  const [letter = ''] = name
  const drawn = html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="6" fill="${colour}"/><text x="16" y="23" text-anchor="middle" font-family="Arial, sans-serif" font-size="20" font-weight="700" fill="${inkOn(colour)}">${letter.toUpperCase()}</text></svg>`
  return { name: 'icon.svg', bytes: Buffer.from(String(drawn)) }
}

/** In place of our own links, focus and buttons, in either scheme. What is pointed at moves away from the paper, or from its ink. */
function stylesOf({ light, dark }: Accent): string {
  const rules = (colour: string, away: string) => {
    const ink = inkOn(colour)
    const pressed = ink === WHITE ? 'black' : 'white'
    return [
      `--link: ${colour}; --focus: ${colour}; --code-key: ${colour};`,
      `--link-hover: color-mix(in srgb, ${colour} 80%, ${away});`,
      `--button: ${colour}; --button-ink: ${ink}; --button-hover: color-mix(in srgb, ${colour} 85%, ${pressed});`,
    ].join(' ')
  }
  const [onLight, onDark] = [rules(light, 'black'), rules(dark, 'white')]
  return `:root, [data-theme="light"] { ${onLight} }
@media (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { ${onDark} } }
[data-theme="dark"] { ${onDark} }
`
}
