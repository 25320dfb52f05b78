import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Command } from 'commander'
import { writing } from './command.ts'
import { commandDocument } from './document.ts'
import { createProgram } from './program.ts'

const newProgram = () => createProgram({ serve: () => Promise.resolve() })

function commandsIn(above: Command, path = above.name()): ReadonlyMap<string, Command> {
  return new Map(
    above.commands.flatMap((command) => {
      const name = `${path} ${command.name()}`
      return [[name, command] as const, ...commandsIn(command, name)]
    }),
  )
}

const headingsIn = (text: string) => [...text.matchAll(/^#{2,4} (farebox .+)$/gm)].map(([, name]) => name ?? '')

describe('the document of commands', async () => {
  const program = await newProgram()
  const commands = commandsIn(program)
  const text = commandDocument(program)

  it('has every command once, in the order of the help', () => {
    assert.ok(commands.size > 60, String(commands.size))
    assert.deepEqual(headingsIn(text), [...commands.keys()])
  })

  it('has every option of every command below its heading, with what it does', () => {
    const parts = text.split(/^#{2,4} (?=farebox )/m).slice(1)
    let options = 0
    for (const [at, [name, command]] of [...commands].entries())
      for (const { flags, description } of command.options) {
        options += 1
        assert.ok(parts[at]?.includes(`| \`${flags.replaceAll('|', '\\|')}\` `), `${name} ${flags}`)
        assert.notEqual(description, '', `${name} ${flags} says nothing`)
      }
    assert.equal(text.match(/^\| `-/gm)?.length, options)
    for (const [name, command] of commands) assert.notEqual(command.description(), '', name)
  })

  it('has arguments that are explained, what is required, and what a command adds to its help', () => {
    assert.match(text, /^\| `<tier>` +\| growth, enterprise, or earned/m)
    assert.match(text, /^\| `--name <name>` +\| [^|]+ \(required\) +\|$/m)
    assert.match(text, /^Both are files\. Without `<after>`, `<before>` is compared/m)
    assert.match(text, /^farebox accounts tier \[options\] <account> <tier>$/m)
  })

  it('has a command that is added, and says what it changes', async () => {
    const more = await newProgram()
    writing(more.command('planted').description('have one below'), 'deep <id>').description('plant one')
    const added = commandDocument(more)
    assert.deepEqual(headingsIn(added), [...commands.keys(), 'farebox planted', 'farebox planted deep'])
    assert.match(
      added,
      /^\| \[farebox planted deep\]\(#farebox-planted-deep\) +\| plant one +\| recorded in the audit log +\|$/m,
    )
  })
})

describe('a run of one command', () => {
  it('loads only the commands that come with its own, and they are those of the whole program', async () => {
    const whole = new Map((await newProgram()).commands.map((command) => [command.name(), command]))
    for (const [word, command] of whole) {
      const alone = await createProgram({ serve: () => Promise.resolve() }, word)
      assert.ok(alone.commands.length <= 2, `${word} loads ${alone.commands.map((one) => one.name())}`)
      const own = alone.commands.find((one) => one.name() === word)
      assert.equal(own?.helpInformation(), command.helpInformation())
    }
  })

  it('has every command where its word is none, for the help and the suggestion', async () => {
    const { length } = (await newProgram()).commands
    for (const word of ['--help', 'help', 'acounts'])
      assert.equal((await createProgram({ serve: () => Promise.resolve() }, word)).commands.length, length)
  })
})
