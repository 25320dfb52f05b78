import type { Command } from 'commander'
import { asMarkdown, markdownTable } from '../kernel/markdown.ts'
import { type Effect, effectOf } from './command.ts'

/** Every command for operators, as a page of Markdown, from the program that reads them. */
export function commandDocument(program: Command): string {
  const commands = commandsBelow(program)
  const runnable = commands.filter(({ effect }) => effect !== undefined)
  const index = runnable.map(({ name, command, effect = 'reads' }) => {
    return [`[${name}](#${name.replaceAll(' ', '-')})`, linked(command.description()), CHANGES[effect]]
  })
  return `# Command line

Written by \`node scripts/cli.ts\` from the program itself: ${runnable.length} commands. \`farebox <command> --help\` says the same on a terminal.

- Commands read the same settings as the service ([configuration.md](configuration.md)); most need \`database.url\` alone.
- A command that fails says why on standard error, and exits with 1. \`models import\` exits with 2 where it held prices back.
- A command that changes something says so in the audit log, a row for each change, in the same transaction: \`farebox audit\`.
- \`--json\` prints the result for programs: an object, or a list with one object per line. Names are in snake_case, amounts are USD as text, times are ISO 8601.
- \`farebox --version\` prints the version.

${markdownTable([['command', 'what it does', 'changes'], ...index])}

${commands.map(commandText).join('\n')}`
}

const CHANGES: Readonly<Record<Effect, string>> = {
  reads: 'nothing',
  writes: 'recorded in the audit log',
  apart: 'yes, with records of its own',
}

type Listed = {
  /** With those above it: farebox keys create. */
  readonly name: string
  readonly command: Command
  readonly depth: number
  /** Undefined where it only has others below it. */
  readonly effect: Effect | undefined
}

/** All commands below one, each before those below it. */
export function commandsBelow(above: Command, path = above.name(), depth = 2): readonly Listed[] {
  return above.commands.flatMap((command) => {
    const name = `${path} ${command.name()}`
    return [{ name, command, depth, effect: effectOf(command) }, ...commandsBelow(command, name, depth + 1)]
  })
}

function commandText({ name, command, depth, effect }: Listed): string {
  const heading = `${'#'.repeat(depth)} ${name}\n\n${sentence(command.description())}\n`
  if (effect === undefined) return heading
  const help = command.createHelp()
  const more = [optionTable(command), textAfterHelp(command)].filter((part) => part !== '')
  return `${heading}\n\`\`\`text\n${help.commandUsage(command)}\n\`\`\`\n${more.map((part) => `\n${part}\n`).join('')}`
}

function optionTable(command: Command): string {
  const help = command.createHelp()
  const words = command.registeredArguments
    .filter(({ description }) => description !== '')
    .map((argument) => [`\`<${help.argumentTerm(argument)}>\``, linked(help.argumentDescription(argument))])
  const options = command.options.map((option) => {
    const needed = option.mandatory ? ' (required)' : ''
    return [`\`${help.optionTerm(option)}\``, `${linked(help.optionDescription(option))}${needed}`]
  })
  const rows = [...words, ...options]
  return rows.length === 0 ? '' : markdownTable([['option', 'what it does'], ...rows])
}

/** What a command adds to the help that commander writes. */
function textAfterHelp(command: Command): string {
  const written: string[] = []
  command.configureOutput({ writeOut: (text) => void written.push(text), getOutHasColors: () => false })
  command.outputHelp()
  return asMarkdown(written.join('').replace(command.helpInformation(), '').trim())
}

function sentence(description: string): string {
  return `${linked(description.charAt(0).toUpperCase() + description.slice(1))}.`
}

/** On a terminal a document is called by its path. */
function linked(text: string): string {
  return asMarkdown(text.replaceAll(/\bdocs\/([\w-]+\.md)\b/g, '[$1]($1)'))
}
