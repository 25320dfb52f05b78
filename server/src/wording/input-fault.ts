import type { z } from 'zod'
import { memberOf } from '../catalogue/price.ts'
import { Fault } from '../kernel/fault.ts'
import { plainName } from '../kernel/plain-name.ts'

/** Of what a schema finds wrong, so much is told at once. */
const TOLD_MOST = 3
const NAME_LENGTH = 100

/** What a schema did not take of what was given, in words about each parameter, with the first one's name beside them. */
export function inputFault({ issues }: Pick<z.ZodError, 'issues'>, given: unknown): Fault {
  const [first] = issues
  const param = first === undefined ? '' : nameOf(first.path)
  const detail = issues
    .slice(0, TOLD_MOST)
    .map((issue) => wordsFor(issue, given))
    .join(' ')
  return new Fault('invalid_request', { detail, ...(param !== '' && { members: { param } }) })
}

type Issue = z.ZodError['issues'][number]

function wordsFor(issue: Issue, given: unknown): string {
  // What a schema of ours says in its own words is meant for callers: as a sentence, or as what follows the name.
  if (issue.code === 'custom' && issue.path.length === 0) return sentence(issue.message)
  if (issue.code === 'unrecognized_keys') return `Unknown parameter ${unknownIn(issue)}.`
  const name = nameOf(issue.path)
  if (name === '') return 'The parameters must be a JSON object.'
  const value = memberOf(given, ...issue.path.map(String))
  if (value === undefined || value === null) return `${quoted(name)} is required.`
  const isSeveral = issue.code === 'invalid_type' && issue.expected === 'string' && Array.isArray(value)
  return `${quoted(name)} ${isSeveral ? 'must be one text, not several' : ruleOf(issue)}.`
}

function unknownIn({ path, keys }: Extract<Issue, { code: 'unrecognized_keys' }>): string {
  const told = keys.slice(0, TOLD_MOST).map((key) => quoted(nameOf([...path, key])))
  return `${told.join(', ')}${keys.length > TOLD_MOST ? ` and ${keys.length - TOLD_MOST} more` : ''}`
}

/** What a value has to be, as people say it. */
function ruleOf(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${KINDS[issue.expected] ?? 'of another type'}`
    case 'invalid_value':
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`
    case 'too_small':
      return leastOf(issue)
    case 'too_big':
      return `must ${HAVE[issue.origin] ?? 'be'} ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${unitOf(issue.origin, issue.maximum)}`
    default:
      return OWN_WORDS.test(issue.message) ? issue.message : 'is not valid'
  }
}

function leastOf({ origin, minimum, inclusive }: Extract<Issue, { code: 'too_small' }>): string {
  if (origin === 'string' && minimum === 1) return 'must not be empty'
  return `must ${HAVE[origin] ?? 'be'} ${inclusive === false ? 'more than' : 'at least'} ${minimum}${unitOf(origin, minimum)}`
}

const OWN_WORDS = /^(must|is) /

const HAVE: Readonly<Partial<Record<string, string>>> = { string: 'have', array: 'have' }

function unitOf(origin: string, count: number | bigint): string {
  const unit = { string: ' character', array: ' item' }[origin]
  return unit === undefined || Number(count) === 1 ? (unit ?? '') : `${unit}s`
}

const KINDS: Readonly<Partial<Record<string, string>>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

/** As callers write it: `documents[0].text`. */
function nameOf(path: Issue['path']): string {
  return path.reduce<string>((name, part) => {
    if (typeof part === 'number') return `${name}[${part}]`
    return name === '' ? plainName(String(part)) : `${name}.${plainName(String(part))}`
  }, '')
}

function quoted(name: string): string {
  return `"${name.slice(0, NAME_LENGTH)}"`
}

function sentence(words: string): string {
  return words.endsWith('.') ? words : `${words}.`
}
