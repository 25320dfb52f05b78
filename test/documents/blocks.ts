import { readFileSync } from 'node:fs'
import path from 'node:path'
import { lexer, type Token } from 'marked'
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
  const blocks = lexer(source)
    .flatMap(codeOf)
    .map(({ lang = '', code }, at) => {
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

/** What looks like a command, in a block that says that it is none. */
export function hiddenCommands({ code }: Block): readonly string[] {
  return code
    .split('\n')
    .filter((line) => /^\s*(?:\$ )?(farebox|npm|npx|node|curl|bash|git|docker|psql|python3?) \S/.test(line))
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
