import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import type { Option } from 'commander'
import { ROOT } from '../../harness/root.ts'
import { commandsBelow } from '../../server/src/cli/document.ts'
import { createProgram } from '../../server/src/cli/program.ts'
import { FAULTS } from '../../server/src/kernel/fault.ts'
import { placesTaken, requestsUsed, tokensBeyond, tokensUsed } from '../../server/src/wording/limit-words.ts'

/**
 * What callers and operators read most, by a few rules that a machine can hold: faults, their particulars, the help of commands, what
 * commands print, and pages and mails.
 */

const LENGTH_MOST = 200

/** Readers search by the usual word, and most are no native speakers. */
const UNCLEAR = [
  'are the most',
  'is the most',
  'the most that',
  'at the most',
  'look after',
  'looked at',
  'whom we ask',
  'where left out',
  'that there are',
  'not taken',
  'it goes on',
  'blindly',
  'has to act',
  'did not answer properly',
  'all the same',
  'of ours',
  'one of ours',
  'what to call it',
  'though the upstream',
] as const

/** Its words are a promise of their own (TASK-4). */
const FIXED_TEXTS: ReadonlySet<string> = new Set(['unsupported_uri'])

const ACTION =
  /(?:^|[.:;] |, then |, or )(?:Add|Ask|Call|Change|Check|Correct|Create|Do not|Flatten|Have|Leave|Link|Look|Lower|Make|Open|Pay|Poll|Quote|Raise|Remove|Report|Retry|Send|Shorten|Sign|Try|Use|ask|use|have)\b/
const WHOSE_FAULT = /on our side|not on your side|^The provider (?:exceeded|rejected)/

function problemsOf(text: string): readonly string[] {
  return [
    ...(text.length > LENGTH_MOST ? [`has ${text.length} characters`] : []),
    ...UNCLEAR.filter((phrase) => text.includes(phrase)).map((phrase) => `says "${phrase}"`),
  ]
}

function problemsOfFault(text: string): readonly string[] {
  return [
    ...(/^[A-Z]/.test(text) ? [] : ['begins without a capital']),
    ...(text.endsWith('.') ? [] : ['ends without a full stop']),
    ...(ACTION.test(text) || WHOSE_FAULT.test(text) ? [] : ['says neither what to do nor whose fault it is']),
    ...problemsOf(text),
  ]
}

/** What is wrong with a text, as a line that names it; nothing where it is right. */
function told(what: string, problems: readonly string[]): readonly string[] {
  return problems.length === 0 ? [] : [`${what} (${problems.join(', ')})`]
}

describe('the text of every fault', () => {
  const texts = Object.entries(FAULTS).filter(([code]) => !FIXED_TEXTS.has(code))

  it('is a sentence within 200 characters that says what to do, or whose fault it is', () => {
    assert.ok(texts.length > 60)
    assert.deepEqual(
      texts.flatMap(([code, { text }]) => told(`${code}: ${text}`, problemsOfFault(text))),
      [],
    )
  })

  const refused: Readonly<Record<string, readonly string[]>> = {
    'So many requests in 60 seconds are the most.': [
      'says neither what to do nor whose fault it is',
      'says "are the most"',
    ],
    'The upstream could not be reached or did not answer properly.': [
      'says neither what to do nor whose fault it is',
      'says "did not answer properly"',
    ],
    'There is no such resource.': ['says neither what to do nor whose fault it is'],
    'unsupported uri': [
      'begins without a capital',
      'ends without a full stop',
      'says neither what to do nor whose fault it is',
    ],
    [`Send ${'x'.repeat(195)}.`]: ['has 201 characters'],
  }
  for (const [text, problems] of Object.entries(refused))
    it(`would not be ${JSON.stringify(text.slice(0, 70))}`, () => assert.deepEqual(problemsOfFault(text), problems))
})

type Source = { readonly file: string; readonly text: string }

const sources: readonly Source[] = globSync('server/src/**/*.ts', { cwd: ROOT })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => ({ file, text: readFileSync(path.join(ROOT, file), 'utf8') }))

/** A string or a template as it is written; in a template, one level of others within its values. */
const LITERAL =
  /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\$]|\\.|\$(?!\{)|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\})*`/
const INTRODUCED = new RegExp(
  String.raw`(?:\bdetail(?::| =)|\b(?:refusal|invalidRequest|invalid|refused)\()\s*(${LITERAL.source})`,
  'g',
)

/** Its rules follow "The base URL", and a full stop follows them. */
const BASE_URLS = path.join('server', 'src', 'upstreams', 'address.ts')

/** What is told of a case: the sentences behind `detail`, and those that go through the functions that make a fault of one. */
function detailsIn({ file, text }: Source): readonly string[] {
  if (file === BASE_URLS) return []
  return [...text.matchAll(INTRODUCED)].map(([, literal = '']) => literal.slice(1, -1))
}

/** Values as long as most are. */
const withValues = (text: string) => text.replaceAll(/\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}/g, '12345678')

describe('the particulars of a fault', () => {
  const details = sources.flatMap((source) => detailsIn(source).map((detail) => ({ file: source.file, detail })))

  it('are sentences within 200 characters in usual words', () => {
    assert.ok(details.length > 150, `${details.length} were found`)
    const wrong = details.flatMap(({ file, detail }) => {
      const isWhole = /[.?}]$/.test(detail)
      return told(`${file}: ${detail}`, [
        ...problemsOf(withValues(detail)),
        ...(isWhole ? [] : ['ends without a full stop']),
      ])
    })
    assert.deepEqual(wrong, [])
  })
})

/** Refusals for a limit of ours. What a provider's limit is, nobody tells us. */
const OF_LIMITS = [
  'rate_limit_exceeded',
  'quota_exceeded',
  'body_too_large',
  'body_too_deep',
  'uri_too_long',
  'headers_too_large',
  'members_full',
] as const
const REFUSED_BY_LIMIT = new RegExp(String.raw`new Fault\('(?:${OF_LIMITS.join('|')})'`, 'g')
/** A value in the sentence itself, or in one of the functions that are called below. */
const NAMES_VALUE = /\$\{|\d|requestsUsed\(|tokensUsed\(|placesTaken\(/

/** What the fault that is made at a place says: within its call, or in the constant before it. */
function saidAt(text: string, at: number): string {
  const call = /^new Fault\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/.exec(text.slice(at))?.[0] ?? ''
  const inline = /\bdetail: ([^\n]+(?:\n[^\n]+)?)/.exec(call)?.[1]
  if (inline !== undefined) return inline
  return /\bdetail\b/.test(call) ? text.slice(text.lastIndexOf('const detail =', at), at) : ''
}

describe('a refusal for a limit', () => {
  it('names a value wherever one is made', () => {
    const made = sources.flatMap(({ file, text }) =>
      [...text.matchAll(REFUSED_BY_LIMIT)].map(({ index }) => ({ file, said: saidAt(text, index) })),
    )
    assert.ok(made.length > 10, `${made.length} were found`)
    const wrong = made.filter(({ said }) => !NAMES_VALUE.test(said))
    assert.deepEqual(wrong, [])
  })

  const tier = { limitedBy: 'tier' } as const
  it('names the limit, what is left of it and when to come again', () => {
    assert.equal(
      requestsUsed(tier, { limit: 60, seconds: 60, retryAfterSeconds: 12 }),
      'Rate limit of your tier: 60 requests per 60 seconds. Retry in 12 s.',
    )
    assert.equal(
      placesTaken(tier, { limit: 5, what: 'calls', retryAfterSeconds: 1 }),
      'Concurrency limit of your tier reached: 5 of 5 calls running. Retry in 1 s.',
    )
    assert.equal(
      tokensBeyond(tier, { tokens: 9_000, limit: 8_000, seconds: 60 }),
      'This call may use up to 9,000 tokens; your limit is 8,000 per 60 seconds.',
    )
    const used = { limit: 8_000, left: 100, tokens: 900, seconds: 60, isInTheWay: false, retryAfterSeconds: 7 }
    assert.equal(
      tokensUsed(tier, used),
      'This call may use up to 900 tokens; 100 of 8,000 per 60 seconds are left. The limit is that of your tier. Retry in 7 s.',
    )
  })
})

/** Where what is printed and shown stands in the code. */
const SHOWN = [
  'server/src/cli/*.ts',
  'server/src/authorization/refused-page.ts',
  'server/src/people-pages/{views,routes}/*.ts',
  'server/src/people-pages/{mandate-form,offer,refusals,routes}.ts',
  'server/src/http/link-page.ts',
  'server/src/mail/letters.ts',
  'server/src/pages/*.ts',
  'server/src/site/**/*.ts',
]

/** Turns of phrase that readers stumbled over there, beside those above. */
const STUMBLED = [
  ...['asked no more', 'sold no more', 'no more calls', 'works no longer', 'works no more', 'count no more'],
  ...['is no id', 'is no time', 'is no role', 'is no budget', 'can not ', 'taken back', 'take it back', 'goes on with'],
  ...[
    'vouch',
    'whoever ',
    'look into ',
    'six figures',
    'is forgotten',
    'sealed anew',
    'by and by',
    'nobody is asked',
    'let in',
  ],
]

/** Without comments, which are for who changes the code. Names in code have no spaces, so what has some is text. */
function shownIn(source: string): string {
  return source.replaceAll(/(?<=^|\s)\/\*\*?\s[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
}

function stumblesIn(text: string): readonly string[] {
  const shown = shownIn(text).toLowerCase()
  return [...UNCLEAR, ...STUMBLED].filter((phrase) => shown.includes(phrase))
}

describe('what commands print, and what pages and mails say', () => {
  const files = globSync(SHOWN, { cwd: ROOT }).filter((file) => !file.endsWith('.test.ts'))

  it('has none of the turns of phrase that readers stumbled over', () => {
    assert.ok(files.length > 90, `${files.length} were found`)
    const wrong = files.flatMap((file) =>
      told(
        file,
        stumblesIn(readFileSync(path.join(ROOT, file), 'utf8')).map((phrase) => `says "${phrase}"`),
      ),
    )
    assert.deepEqual(wrong, [])
  })

  it('would be caught with them, but not in a comment', () => {
    assert.deepEqual(stumblesIn("print('The upstream is asked no more.')"), ['asked no more'])
    assert.deepEqual(stumblesIn('<p>Whoever runs this has not set it up. 5 at the most.</p>'), [
      'at the most',
      'whoever ',
    ])
    assert.deepEqual(stumblesIn("/** Whoever asks. */\n  // is asked no more\nprint('Added.')"), [])
  })
})

/** What is left out has to mean something, and the help says what. */
const SAYS_DEFAULT = /\((?:default|new [a-z]+): |\brequired\b/

function problemsOfHelp(help: string): readonly string[] {
  return [
    ...(help === '' ? ['says nothing'] : []),
    ...(/^[A-Z]/.test(help) && !/^[A-Z]{2}|^OAuth/.test(help) ? ['begins with a capital'] : []),
    ...(help.endsWith('.') ? ['ends with a full stop'] : []),
    ...problemsOf(help),
  ]
}

function problemsOfOption({ description, mandatory, required, defaultValue, negate }: Option): readonly string[] {
  const isOptional = required && !mandatory && !negate && defaultValue === undefined
  return [
    ...problemsOfHelp(description),
    ...(isOptional && !SAYS_DEFAULT.test(description) ? ['names no default'] : []),
  ]
}

describe('the help of every command', async () => {
  const commands = commandsBelow(await createProgram({ serve: () => Promise.resolve() }))

  it('says what the command does', () => {
    assert.ok(commands.length > 50, `${commands.length} were found`)
    assert.deepEqual(
      commands.flatMap(({ name, command }) => told(name, problemsOfHelp(command.description()))),
      [],
    )
  })

  it('says what each option does, and its default', () => {
    const options = commands.flatMap(({ name, command }) => command.options.map((option) => ({ name, option })))
    assert.ok(options.length > 80, `${options.length} were found`)
    const wrong = options.flatMap(({ name, option }) =>
      told(`${name} ${option.flags}: ${option.description}`, problemsOfOption(option)),
    )
    assert.deepEqual(wrong, [])
  })

  const refused: Readonly<Record<string, readonly string[]>> = {
    'look after whom we ask': ['says "look after"', 'says "whom we ask"'],
    'input that it has written to a cache; as input where left out': ['says "where left out"'],
    'Manage models.': ['begins with a capital', 'ends with a full stop'],
    '': ['says nothing'],
  }
  for (const [help, problems] of Object.entries(refused))
    it(`would not be ${JSON.stringify(help)}`, () => assert.deepEqual(problemsOfHelp(help), problems))
})
