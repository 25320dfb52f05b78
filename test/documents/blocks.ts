import { readFileSync } from 'node:fs'
import path from 'node:path'
import { lexer, type Token, walkTokens } from 'marked'
import { filesOfCheckout } from '../../harness/checkout-files.ts'

/** A block of code in a paper. */
export type Block = {
  readonly paper: string
  /** Which of the blocks of its paper it is, from 1. */
  readonly at: number
  /** Empty where it does not say what it is. */
  readonly language: string
  /** The word behind the language: `output` is what the block before prints, `yours` what the reader has of their own. */
  readonly mark: string | undefined
  readonly code: string
  /** What it prints, where the paper shows that. */
  readonly output: string | undefined
}

/** The history and decisions keep what was once right. The reference of commands is written from the program itself. */
const isLeftOut = (file: string) => /^(CHANGELOG\.md|docs\/cli\.md|docs\/decisions\/.*)$/.test(file)

export function blocksOfPapers(root: string): readonly Block[] {
  return filesOfCheckout(root)
    .filter((file) => file.endsWith('.md') && !isLeftOut(file))
    .toSorted()
    .flatMap((file) => blocksIn(file, readFileSync(path.join(root, file), 'utf8')))
}

export function blocksIn(paper: string, source: string): readonly Block[] {
  const tokens = lexer(source)
  walkTokens(tokens, (token) => {
    if (token.type === 'html' && !token.raw.startsWith('<!--'))
      throw new Error(`${paper} has HTML, in which no block of code is seen: ${token.raw.trim()}`)
  })
  const blocks = tokens.flatMap(codeOf).map(({ lang = '', code }, at) => {
    const [language = '', mark] = lang.split(' ')
    return { paper, at: at + 1, language, mark, code }
  })
  return blocks.map((block, at) => {
    const next = blocks[at + 1]
    return { ...block, output: next?.mark === 'output' ? next.code : undefined }
  })
}

function codeOf(token: Token): readonly { readonly lang: string | undefined; readonly code: string }[] {
  if (token.type === 'code') return [{ lang: token.lang, code: String(token.text) }]
  if (token.type === 'list') return token.items.flatMap(({ tokens }: { tokens: Token[] }) => tokens.flatMap(codeOf))
  return 'tokens' in token ? (token.tokens ?? []).flatMap(codeOf) : []
}

/** Commands of a shell, each in one line and without its comment. */
export function commandsOf(code: string): readonly string[] {
  return code
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.replace(/(^|\s+)#.*$/, '').trim())
    .filter((line) => line !== '')
}

/** The script that is left of commands without those that are not run. */
export function withoutCommands(code: string, left: (command: string) => boolean): string {
  if (!commandsOf(code).some(left)) return code
  return commandsOf(code)
    .filter((command) => !left(command))
    .join('\n')
}

const KEYWORDS = new Set(['for', 'do', 'done', 'until', 'while', 'if', 'then', 'fi', 'else'])

/** The programs that a line of a shell begins, without the folders that they are in: behind variables, `exec` and other commands, too. */
function programsIn(line: string): readonly string[] {
  return line.split(/&&|\|\|?|;|\$\(/).flatMap((part) => {
    const [, word = ''] = /^\s*(?:\$ )?(?:\w+=(?:"[^"]*"|'[^']*'|\S*)\s+|exec\s+)*(\S+)/.exec(part) ?? []
    const name = word.split('/').at(-1) ?? ''
    return /^[a-z][\w-]*$/.test(name) && !KEYWORDS.has(name) ? [name] : []
  })
}

/** All programs that the commands of the papers begin. */
export function programsOf(blocks: readonly Block[]): ReadonlySet<string> {
  const commands = blocks.filter(({ language }) => language === 'sh').flatMap(({ code }) => commandsOf(code))
  return new Set([...commands.flatMap(programsIn), 'npx', 'git', 'docker', 'psql', 'python', 'python3'])
}

/** What looks like a command, in a block that says that it is none. */
export function hiddenCommands({ code }: Block, programs: ReadonlySet<string>): readonly string[] {
  return code.split('\n').filter((line) => programsIn(line).some((name) => programs.has(name)))
}

/** Commands that may end without a word: those that set variables, and those that write into a file. */
export function isSilent(command: string): boolean {
  return /^(export )?\w+=\S+( \w+=\S+)*$/.test(command) || / (>|-o) \S+$/.test(command)
}

/** What the reader's `farebox` would not notice, as it is run by a process that stays: variables before it, its input, another folder. */
export function unheard(code: string): readonly string[] {
  return commandsOf(code).filter((command) =>
    /(^|[\s(])\w+=[^\s(]+ +farebox |\bexport FAREBOX_|\| *farebox |\bfarebox [^|;&]*<|(^|[;&(] *)cd /.test(command),
  )
}

/** Addresses beyond this machine. */
export function addressesElsewhere(code: string): readonly string[] {
  const addresses = code.match(/\bhttps?:\/\/[^\s"'`)]+/g) ?? []
  return addresses.filter((address) => !/^https?:\/\/(127\.0\.0\.1|localhost|\[::1\])(?=[:/]|$)/.test(address))
}

/** What is right only until the clock has gone on: the beginning of an id, which is made of the time. */
export function beginningsOfIds(shown: string): readonly string[] {
  return shown.match(/(?<!\w)[0-9a-f][0-9a-f-]{3,}…/gi) ?? []
}

/** What a reader would have to fill in: `<account>`, `{base_url}` and ellipses, but not in comments. */
export function blanksIn(code: string): readonly string[] {
  return commandsOf(code).flatMap((line) => line.match(/<[a-z][a-z _-]*>|\{base_url\}|…/g) ?? [])
}

/** Whether lines that a paper shows stand in what was printed, in their order. An ellipsis stands for anything in its line. */
export function isPrinted(shown: string, printed: string): boolean {
  const lines = shown
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => line.split('…').map(asItIs).join('.*'))
  return new RegExp(`^${lines.join('$[\\s\\S]*?^')}$`, 'mi').test(printed.replaceAll('\r', ''))
}

const asItIs = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
