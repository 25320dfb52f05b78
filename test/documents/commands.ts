import type { Command } from 'commander'
import { lexer, type Token } from 'marked'

/** Commands that a paper shows: in a block, or in a line of text, where it may leave out what the reader has to add. */
export type Shown = { readonly line: string; readonly isBlock: boolean }

/** Code of a paper: blocks by their lines, and what stands in backquotes. */
export function codeIn(source: string): readonly Shown[] {
  return lexer(source).flatMap(codeOf)
}

function codeOf(token: Token): readonly Shown[] {
  if (token.type === 'code') return linesOf(String(token.text)).map((line) => ({ line, isBlock: true }))
  if (token.type === 'codespan') return [{ line: String(token.text), isBlock: false }]
  if (token.type === 'table')
    return [...token.header, ...token.rows.flat()].flatMap(({ tokens }) => tokens.flatMap(codeOf))
  if (token.type === 'list') return token.items.flatMap(({ tokens }: { tokens: Token[] }) => tokens.flatMap(codeOf))
  return 'tokens' in token ? (token.tokens ?? []).flatMap(codeOf) : []
}

function linesOf(code: string): readonly string[] {
  return code.replaceAll(/\\\n\s*/g, ' ').split('\n')
}

/** Where `farebox` is what the shell runs: at the beginning, behind another command, or in a substitution. */
const CALL = /(?:^|[|;&(]\s*|\bexec |\bnpx |\/|\bdo\s+)farebox (?!…)([^\n]*)/g

/** The words behind each `farebox` of a line, up to where the shell ends the command. */
export function callsIn(line: string): readonly (readonly string[])[] {
  return [...line.matchAll(CALL)].map(([, rest = '']) => {
    const words = rest.match(/"[^"]*"|'[^']*'|<[^>]*>|\[[^\]]*\]|[|;&)>#]|[^\s"'<[|;&)>#]+/g) ?? []
    const end = words.findIndex((word) => /^[|;&)>#]$/.test(word))
    return end === -1 ? words : words.slice(0, end)
  })
}

/** Why a line can't be typed; nothing where it can. */
export function problemsOf(program: Command, { line, isBlock }: Shown): readonly string[] {
  return callsIn(line).flatMap((words) => problemOf(program, words, isBlock) ?? [])
}

function problemOf(program: Command, words: readonly string[], isBlock: boolean): string | undefined {
  let command = program
  let at = 0
  for (;;) {
    const below: Command | undefined = command.commands.find((one) => one.name() === words[at])
    if (below === undefined) break
    command = below
    at += 1
  }
  if (command === program) return /^-/.test(words[0] ?? '') ? undefined : `there is no command "${words[0] ?? ''}"`
  const { given, unknown, isOpen } = readArguments(command, words.slice(at))
  if (unknown !== undefined) return `"${command.name()}" has no option ${unknown}`
  const taken = command.registeredArguments.map(({ required }) => required)
  if (command.commands.length > 0 && given > taken.length) return `"${command.name()}" has no such command below it`
  if (given > taken.length) return `"${command.name()}" takes ${taken.length} arguments, not ${given}`
  const needed = taken.filter(Boolean).length
  const isShort = isBlock && !isOpen && given < needed
  return isShort ? `"${command.name()}" needs ${needed} arguments, not ${given}` : undefined
}

/** How many arguments there are beside options. An ellipsis stands for some that the reader adds. */
function readArguments(command: Command, words: readonly string[]) {
  let given = 0
  let unknown: string | undefined
  let isOpen = false
  for (let at = 0; at < words.length; at += 1) {
    const [word = ''] = (words[at] ?? '').split('=')
    const name = word.replace(/^\[/, '').split(' ')[0] ?? ''
    if (name.includes('…')) isOpen = true
    else if (name === '--help') isOpen = true
    else if (name.startsWith('--')) {
      const option = command.options.find(({ long }) => long === name.replace(/\]$/, ''))
      if (option === undefined) unknown ??= name
      else if ((option.required || option.optional) && !word.startsWith('[') && !word.includes('=')) at += 1
    } else given += 1
  }
  return { given, unknown, isOpen }
}
