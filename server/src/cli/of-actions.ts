import { Argument, type Command, Option } from 'commander'
import { z } from 'zod'
import type { Config } from '../config.ts'
import type { Action, OperatorParts } from '../operate/action.ts'
import { createSendMail } from '../storage/mail.ts'
import { declared, ids, operator, plain, print, running, withPools } from './command.ts'
import { sealFor } from './seal-for.ts'

/** Adds a command for each action of a group, as `charges` is for `charges refund`. */
export function addActions(program: Command, group: string, summary: string, actions: readonly Action[]): void {
  const above = program.command(group).description(summary)
  for (const action of actions) addAction(above, action)
}

function addAction(above: Command, action: Action): void {
  const command = declared(above, action.name.split(' ').at(-1) ?? '', action.effect).description(action.summary)
  for (const name of action.words) command.addArgument(new Argument(`<${name}>`, descriptionOf(action, name)))
  const options = Object.keys(action.input.shape).filter((name) => !action.words.includes(name))
  for (const name of options) command.addOption(optionOf(action, name))
  command.option('--json', 'print the result as JSON (default: text)')
  command.action((...given: unknown[]) => {
    const { json, ...values } = command.opts<Record<string, unknown> & { readonly json?: true }>()
    const words = Object.fromEntries(action.words.map((name, at) => [name, given[at]]))
    return running((config) => run(config, action, { ...values, ...words }, json === true))
  })
}

function optionOf(action: Action, name: string): Option {
  const schema = action.input.shape[name]
  const isFlag = schema instanceof z.ZodDefault && schema.unwrap() instanceof z.ZodBoolean
  const written = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}${isFlag ? '' : ' <text>'}`
  const isNeeded = schema instanceof z.ZodType && !schema.safeParse(undefined).success
  return new Option(written, descriptionOf(action, name)).makeOptionMandatory(isNeeded)
}

function descriptionOf({ input, name: action }: Action, name: string): string {
  const schema = input.shape[name]
  const inner = schema instanceof z.ZodOptional || schema instanceof z.ZodDefault ? schema.unwrap() : schema
  const description =
    (schema instanceof z.ZodType && schema.meta()?.description) ||
    (inner instanceof z.ZodType && inner.meta()?.description)
  if (typeof description !== 'string') throw new Error(`${action}: ${name} has no description`)
  return description
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
