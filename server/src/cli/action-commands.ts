import { readFileSync } from 'node:fs'
import { Argument, type Command, Option } from 'commander'
import { z } from 'zod'
import { ceilingsOf } from '../calls/loss-sums.ts'
import type { Config } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import type { Action, OperatorParts } from '../operate/action.ts'
import { ACTIONS, type ActionGroup } from '../operate/actions.ts'
import { resultAsJson } from '../operate/json.ts'
import { createSendMail } from '../storage/mail.ts'
import { declared, ids, operator, plain, print, readInput, running, withPools } from './command.ts'
import { sealFor } from './seal-for.ts'

/** Adds the commands of a group. An action that has the group's own name is what the word does by itself. */
export async function actionCommands(group: ActionGroup): Promise<(program: Command) => Command> {
  const { summary, load } = ACTIONS[group]
  const actions = await load()
  return (program) => {
    const own = actions.find(({ name }) => name === group)
    const above = own === undefined ? program.command(group).description(summary) : addAction(program, own)
    for (const action of actions) if (action !== own) addAction(above, action)
    return above
  }
}

function addAction(above: Command, action: Action): Command {
  const command = declared(above, action.name.split(' ').at(-1) ?? '', action.effect).description(action.summary)
  for (const name of action.positional) command.addArgument(argumentOf(action, name))
  const options = Object.keys(action.input.shape)
    .filter((name) => !action.positional.includes(name))
    .map((name) => ({ name, option: optionOf(action, name) }))
  for (const { option } of options) command.addOption(option)
  command.option('--json', 'print the result as JSON (default: text)')
  return command.action((...given: unknown[]) => {
    const written = command.opts<Record<string, unknown>>()
    const input = [
      ...options.map(({ name, option }) => {
        const value = written[option.attributeName()]
        return [name, option.negate ? value === false : value] as const
      }),
      ...action.positional.map((name, at) => [name, given[at]] as const),
    ]
    const named = Object.fromEntries(input.filter(([, value]) => value !== undefined))
    return running((config) => run(config, action, named, written.json === true))
  })
}

function argumentOf(action: Action, name: string): Argument {
  const { shown = name, description } = helpOf(action, name)
  return new Argument(isNeeded(action, name) ? `<${shown}>` : `[${shown}]`, description)
}

function optionOf(action: Action, name: string): Option {
  const { shown, description, isList } = helpOf(action, name)
  const option = new Option(
    shown === undefined ? writtenOf(action, name) : `${writtenOf(action, name)} <${shown}>`,
    description,
  )
  if (isList === true && !option.variadic) option.argParser<readonly string[]>((text, all = []) => [...all, text])
  return option.makeOptionMandatory(isNeeded(action, name))
}

/** A file with a secret is named, not the secret. */
function writtenOf(action: Action, name: string): string {
  const written = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  return helpOf(action, name).from === 'file' ? `${written}-file` : written
}

function isNeeded({ input }: Action, name: string): boolean {
  const schema = input.shape[name]
  return schema instanceof z.ZodType && !schema.safeParse(undefined).success
}

/** What is shown for a value in help; nothing of a flag. */
const help = z.looseObject({
  description: z.string(),
  shown: z.string().optional(),
  isList: z.boolean().optional(),
  from: z.string().optional(),
})

function helpOf({ input, name: action }: Action, name: string): z.output<typeof help> {
  for (let schema = input.shape[name]; schema instanceof z.ZodType; ) {
    const found = help.safeParse(schema.meta())
    if (found.success) return found.data
    schema = schema instanceof z.ZodOptional || schema instanceof z.ZodDefault ? schema.unwrap() : undefined
  }
  throw new Error(`${action}: ${name} has no description`)
}

async function run(config: Config, action: Action, given: Record<string, unknown>, asJson: boolean): Promise<void> {
  const read = action.input.safeParse(await withSecrets(action, given))
  if (!read.success) throw new Error(read.error.issues.map((issue) => problemOf(action, issue)).join('\n'))
  const say = (line: string) => void (asJson ? process.stderr : process.stdout).write(`${plain(line)}\n`)
  await withPools(config, async ({ rest: pool }) => {
    const result = await action.run({ ...partsOf(config, pool), say }, read.data)
    for (const line of asJson ? resultAsJson(result) : action.lines(result, read.data).map(plain)) print(line)
  })
}

function partsOf(config: Config, pool: OperatorParts['pool']): Omit<OperatorParts, 'say'> {
  const { master_key: master, previous_master_key: previous } = config.secrets
  const siteUrl = config.http.site_url
  const seal = () => sealFor(pool, config)
  return {
    pool,
    ids,
    clock: systemClock,
    by: operator(),
    settings: {
      testCredit: config.people.test_credit,
      lossCeilings: ceilingsOf(config.loss),
      rerankModels: config.rerank.models,
      siteUrl,
      quoteKeys: [master, previous].filter((key) => key !== undefined),
    },
    seal,
    letters: async () => {
      const opened = siteUrl === undefined ? null : await seal()
      return opened === null || siteUrl === undefined
        ? null
        : { sendMail: createSendMail({ ids, seal: opened }), siteUrl }
    },
  }
}

const SECRET_BYTES_MOST = 1_024

/** Reads what may not be an argument, which others on the machine can read. */
async function withSecrets(action: Action, given: Record<string, unknown>): Promise<Record<string, unknown>> {
  const read = { ...given }
  for (const [name, value] of Object.entries(given)) {
    const { from } = helpOf(action, name)
    if (from === 'file') read[name] = readFileSync(String(value), 'utf8')
    if (from !== 'standard input') continue
    const option = writtenOf(action, name)
    if (value !== '-')
      throw new Error(
        `give ${option} - and pass the secret on standard input: other users of the machine can read arguments`,
      )
    read[name] = await readInput(SECRET_BYTES_MOST)
  }
  return read
}

function problemOf(action: Action, { path, message }: z.core.$ZodIssue): string {
  return message.startsWith('must ') ? `${subjectOf(action, String(path[0]))} ${message}` : message
}

function subjectOf(action: Action, name: string): string {
  return action.positional.includes(name) ? `<${helpOf(action, name).shown ?? name}>` : writtenOf(action, name)
}
