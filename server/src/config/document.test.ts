import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { kindOf, leavesOf, section, setting } from './described.ts'
import { configurationDocument } from './document.ts'
import { integer } from './kinds.ts'
import { settings } from './settings.ts'
import { variableOf } from './sources.ts'

/** Names of settings by what zod itself makes of the schema, and not by how the document walks it. */
function namesIn(schema: unknown, prefix = ''): readonly string[] {
  const { properties } = Object(schema)
  if (properties === undefined) return [prefix]
  return Object.entries(properties).flatMap(([key, below]) => namesIn(below, prefix === '' ? key : `${prefix}.${key}`))
}

const names = namesIn(z.toJSONSchema(settings, { io: 'input', unrepresentable: 'any' }))
const text = configurationDocument()
/** What stands below each heading. */
const parts = new Map(
  text
    .split(/^#{2,3} /m)
    .slice(1)
    .map((part) => [part.slice(0, part.indexOf('\n')), part] as const),
)

describe('the document of settings', () => {
  it('has every setting of the schema once, in its order', () => {
    assert.ok(names.length > 60, String(names.length))
    const sections = new Set(names.filter((name) => name.includes('.')).map((name) => name.split('.')[0]))
    const headings = [...text.matchAll(/^#{2,3} (.+)$/gm)].map(([, heading]) => heading ?? '')
    assert.deepEqual(
      headings.filter((heading) => !sections.has(heading)),
      names,
    )
    assert.equal(headings.length, names.length + sections.size)
    assert.ok(text.includes(`: ${names.length} settings,`))
  })

  it('has the variable, type, bounds and default of each, and what to do with it', () => {
    for (const name of names) {
      const part = parts.get(name) ?? assert.fail(name)
      assert.ok(part.includes(`- Environment: \`${variableOf(name)}\``), name)
      for (const what of ['Type', 'Bounds', 'Default', 'What to do'])
        assert.match(part, new RegExp(`^- ${what}: \\S`, 'm'), name)
    }
    assert.equal(text.match(/^- Bounds: /gm)?.length, names.length)
    assert.match(parts.get('http.body_bytes') ?? '', /^- Bounds: 1024 to 16777216\n- Default: `1048576` \(1 MiB\)$/m)
    assert.match(parts.get('roles') ?? '', /^- Default: `\[gateway, agent, site, admin, worker\]`$/m)
    assert.match(parts.get('database.url') ?? '', /^- Default: none; required$/m)
  })

  it('says of secrets, and of nothing else, that they can come from a file', () => {
    const secret = leavesOf(settings).filter(({ type }) => kindOf(type)?.isSecret === true)
    assert.deepEqual(
      names.filter((name) => parts.get(name)?.includes(`\`${name}_file\``)),
      secret.map(({ path }) => path),
    )
    assert.equal(secret.length, 6)
  })

  it('can not be written while a setting does not say what it does, or a section what it is about', () => {
    const of = (type: z.ZodType) => () => configurationDocument(Object.assign(z.strictObject({ planted: type })))
    const most = integer(1, 2)
    assert.throws(of(section(z.strictObject({ most }), 'About.')), /planted\.most does not say what it does/)
    const untyped = setting(z.string(), 'Does.', 'Do.')
    assert.throws(
      of(section(z.strictObject({ untyped }), 'About.')),
      /planted\.untyped does not say what its values are/,
    )
    assert.throws(of(z.strictObject({ most: setting(integer(1, 2), 'Does.', 'Do.') })), /planted\.\* do not say/)
  })
})
