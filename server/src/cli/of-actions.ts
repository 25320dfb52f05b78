import { Argument, type Command, Option } from 'commander'
import { z } from 'zod'
import type { Config } from '../config.ts'
import type { Action, OperatorParts } from '../operate/action.ts'
import { ACTIONS, type ActionGroup } from '../operate/actions.ts'
import { createSendMail } from '../storage/mail.ts'
import { declared, ids, operator, plain, print, running, withPools } from './command.ts'
import { sealFor } from './seal-for.ts'

/** Adds the commands of a group. An action that has the group's own name is what the word does by itself. */
export function addActions(program: Command, group: ActionGroup): void {
  const { summary, actions }: { readonly summary: string; readonly actions: readonly Action[] } = ACTIONS[group]
  const own = actions.find(({ name }) => name === group)
  const above = own === undefined ? program.command(group).description(summary) : addAction(program, own)
  for (const action of actions) if (action !== own) addAction(above, action)
}

function addAction(above: Command, action: Action): Command {
  const command = declared(above, action.name.split(' ').at(-1) ?? '', action.effect).description(action.summary)
  for (const name of action.words) command.addArgument(argumentOf(action, name))
  const options = Object.keys(action.input.shape).filter((name) => !action.words.includes(name))
  for (const name of options) command.addOption(optionOf(action, name))
  command.option('--json', 'print the result as JSON (default: text)')
  return command.action((...given: unknown[]) => {
    const { json, ...values } = command.opts<Record<string, unknown> & { readonly json?: true }>()
    const words = Object.fromEntries(action.words.map((name, at) => [name, given[at]]))
    return running((config) => run(config, action, { ...values, ...words }, json === true))
  })
}

function argumentOf(action: Action, name: string): Argument {
  const written = isNeeded(action, name) ? `<${name}>` : `[${name}]`
  return new Argument(written, helpOf(action, name).description)
}

function optionOf(action: Action, name: string): Option {
  const { shown, description } = helpOf(action, name)
  const written = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  const option = new Option(shown === undefined ? written : `${written} <${shown}>`, description)
  return option.makeOptionMandatory(isNeeded(action, name))
}

function isNeeded({ input }: Action, name: string): boolean {
  const schema = input.shape[name]
  return schema instanceof z.ZodType && !schema.safeParse(undefined).success
}

/** What is shown for a value in help; nothing of a flag. */
const help = z.looseObject({ description: z.string(), shown: z.string().optional() })

function helpOf({ input, name: action }: Action, name: string): z.output<typeof help> {
  const schema = input.shape[name]
  const inner = schema instanceof z.ZodOptional ? schema.unwrap() : schema
  const found = help.safeParse(inner instanceof z.ZodType ? inner.meta() : undefined)
  if (!found.success) throw new Error(`${action}: ${name} has no description`)
  return found.data
}

async function run(config: Config, action: Action, given: Record<string, unknown>, asJson: boolean): Promise<void> {
  const read = action.input.safeParse(given)
  if (!read.success) throw new Error(read.error.issues.map((issue) => whatIsWrong(action, issue)).join('\n'))
  await withPools(config, async ({ rest: pool }) => {
    const [seal, siteUrl] = [await sealFor(pool, config), config.http.site_url]
    const letters = seal === null || siteUrl === undefined ? null : { sendMail: createSendMail({ ids, seal }), siteUrl }
    const parts: OperatorParts = { pool, ids, by: operator(), letters }
    const result = await action.run(parts, read.data)
    if (asJson) print(JSON.stringify(result))
    else for (const line of action.lines(result)) print(plain(line))
  })
}

function whatIsWrong({ words }: Action, { path, message }: z.core.$ZodIssue): string {
  const name = String(path[0] ?? '')
  return words.includes(name) ? message : `--${name}: ${message}`
}
