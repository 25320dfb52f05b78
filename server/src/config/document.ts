import { asMarkdown } from '../kernel/markdown.ts'
import { aboutOf, describe, leavesOf, type Setting } from './described.ts'
import { settings } from './settings.ts'
import { variableOf } from './sources.ts'

type Section = { readonly name: string; readonly about: string | undefined; readonly settings: readonly Setting[] }

/** Every setting for operators, as a page of Markdown, from the schema by which settings are read. */
export function configurationDocument(schema = settings): string {
  const sections = Object.entries(schema.shape).map(([name, type]): Section => {
    return { name, about: aboutOf(type), settings: leavesOf(type, name).map(describe) }
  })
  const count = sections.reduce((sum, { settings: some }) => sum + some.length, 0)
  return `${introduction(count)}\n${sections.map(sectionText).join('\n')}`
}

function introduction(count: number): string {
  return `# Configuration

Written by \`node scripts/configuration.ts\` from the schema by which the program reads its settings: ${count} settings, of which only
\`database.url\` is required.

- **File**: settings stand in \`farebox.yaml\` in the working directory, or in the file that \`FAREBOX_CONFIG\` names.
- **Environment**: each has a variable too, which wins over the file. A list is comma-separated there.
- **Secrets** come from the environment, or from a file of their own that \`<name>_file\` or \`<VARIABLE>_FILE\` names. In \`farebox.yaml\`
  itself they are refused.
- A value outside its bounds, or an unknown name, stops the start: the process says which setting, and what it has to be. Settings are read when a process starts: restart it after a change.
- \`farebox config check\` says whether the service would start.

\`\`\`yaml
roles: [gateway, worker, admin]
database:
  url_file: /run/secrets/database-url
http:
  public_url: https://api.example.com
  trusted_proxies: [10.0.0.0/8]
\`\`\`

The same \`http.trusted_proxies\` in the environment: \`FAREBOX_HTTP_TRUSTED_PROXIES=10.0.0.0/8\`.
`
}

function sectionText({ name, about, settings: some }: Section): string {
  const parts = some.map((one) => `${one.path === name ? '##' : '###'} ${one.path}\n\n${settingText(one)}`)
  const [first] = some
  if (first?.path === name) return parts.join('\n')
  if (about === undefined)
    throw new Error(`the settings ${name}.* do not say what they are about: make them with section()`)
  return `## ${name}\n\n${about}\n\n${parts.join('\n')}`
}

function settingText(setting: Setting): string {
  const { does, advice, type, bounds, isSecret } = setting
  return `${asMarkdown(does)}

- Environment: ${isSecret ? secretPlaces(setting) : `\`${variableOf(setting.path)}\``}
- Type: ${type}${isSecret ? ', a secret' : ''}
- Bounds: ${asMarkdown(bounds)}
- Default: ${defaultText(setting)}
- What to do: ${asMarkdown(advice)}
`
}

function secretPlaces({ path }: Setting): string {
  const file = `${path}_file`
  return `\`${variableOf(path)}\`; or the path of a file as \`${variableOf(file)}\` or \`${file}\``
}

function defaultText({ path, byDefault, isRequired }: Setting): string {
  if (isRequired)
    return path.startsWith('people.issuer.') ? 'none; required with the others of `people.issuer`' : 'none; required'
  if (byDefault === undefined) return 'none'
  if (Array.isArray(byDefault)) return `\`[${byDefault.join(', ')}]\``
  return `\`${byDefault}\`${inUnits(path, byDefault)}`
}

/** Large numbers as people say them. */
function inUnits(path: string, value: unknown): string {
  if (typeof value !== 'number' || value === 0) return ''
  if (path.endsWith('_ms') && value % 1_000 === 0) return ` (${value / 1_000} s)`
  if (!path.endsWith('_bytes')) return ''
  const [size, unit] = value % 1_048_576 === 0 ? [1_048_576, 'MiB'] : [1_024, 'KiB']
  return ` (${value / size} ${unit})`
}
