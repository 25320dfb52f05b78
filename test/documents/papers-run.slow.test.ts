import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from '../../harness/root.ts'
import { type Block, blanksIn, blocksIn, blocksOfPapers, commandsOf, hiddenCommands, isPrinted } from './blocks.ts'
import { LANGUAGES_RUN, startReader } from './reader.ts'

/**
 * Every command and every program of the papers is run as it stands there, paper by paper, against the whole service and its
 * sandbox. What another test runs, and what is not run at all, is listed here with the reason.
 */

type Elsewhere = { readonly paper: string; readonly languages: readonly string[]; readonly test: string }

const RUN_ELSEWHERE: readonly Elsewhere[] = [
  // From an empty PostgreSQL, with processes of its own.
  { paper: 'docs/operating.md', languages: ['sh'], test: 'test/house/operating.slow.test.ts' },
  // By what reads our settings.
  { paper: 'docs/operating.md', languages: ['yaml'], test: 'test/documents/settings.test.ts' },
  { paper: 'docs/configuration.md', languages: ['yaml'], test: 'test/documents/settings.test.ts' },
  // With the package as npm installs it.
  { paper: 'client/README.md', languages: ['ts'], test: 'test/client/package.slow.test.ts' },
  // By what each agent reads of its file.
  { paper: 'docs/agents.md', languages: ['json', 'toml'], test: 'test/mcp/snippets.test.ts' },
]

const INSTALLS = 'installs the packages that the tests themselves run on; .ci/run begins with it'
const NEW = 'changes the checkout; test/house/new-operation.slow.test.ts does it in a copy'
const FAULTS = 'takes minutes; test/faults/ runs the same at reduced counts'
const AGENT =
  "needs an agent's program; test/agents/ sends what it sends, test/mcp/snippets.test.ts reads its address and header"

/** Commands that are not run as they stand, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm ci': INSTALLS,
  'scripts/with-node npm ci': INSTALLS,
  'npm ci && npm run dev': `${INSTALLS}; test/house/dev.slow.test.ts runs npm run dev`,
  'scripts/with-node npm ci && npm run dev': INSTALLS,
  'npm install @farebox/client': 'asks npm for it; test/client/package.slow.test.ts installs the package from a file',
  'npm run new -- operation weather_forecast --summary "The weather of the days to come at a place" --price 0.004 --category traffic --parameter place --upstream weather':
    NEW,
  'npm test -- test/acceptance/operations/weather-forecast.test.ts': NEW,
  'curl -i "$FAREBOX_URL/apis/v1/weather/forecast?place=Paris" -H "Authorization: Bearer $FAREBOX_KEY"': NEW,
  'npm run check': 'a step of .ci/run',
  'node scripts/contract.ts && node scripts/client-types.ts && node scripts/catalogue.ts && node scripts/cli.ts':
    'writes into the checkout; npm run check compares what they write',
  'HARNESS_SEED=1429604371 npm test -- server/src/kernel/money.test.ts':
    'runs tests inside a test; test/planted/catch.ts gives tests a seed in this way',
  'npm run bench -- overhead': 'takes minutes; test/house/bench.alone.test.ts runs it reduced',
  'npm run bench -- compare 0.1.0': 'takes minutes; test/house/bench.alone.test.ts runs it reduced',
  'npm run faults -- --seed 7 --seconds 60': FAULTS,
  'npm run faults -- --seed 7 --seconds 60 --json': FAULTS,
  "npm run faults -- --seconds 30 --only 'kill gateway' --only 'cut database' --keep": FAULTS,
  'npm run proof -- test/faults': FAULTS,
  'npm run proof -- test/planted/faults.slow.test.ts': FAULTS,
  'node sandbox/src/main.ts --port 8701 --smtp-port 8704 --seed 1':
    'goes on until it is stopped; harness/sandbox.ts starts it for every test',
  'node sandbox/src/main.ts --replay ./recordings/a-vendor':
    'goes on until it is stopped; test/house/probe-command.test.ts replays recordings',
  claude: AGENT,
  'claude mcp add --transport http farebox <mcp_url>': AGENT,
  'claude mcp add --transport http farebox <mcp_url> --header "Authorization: Bearer <key>"': AGENT,
}

/** Parts of a program, which can't be run alone. They stand in this file as they are shown. */
const PARTS: readonly { readonly paper: string; readonly language: string; readonly file: string }[] = [
  { paper: 'CONTRIBUTING.md', language: 'ts', file: 'server/src/kernel/money.test.ts' },
]

const blocks = blocksOfPapers(ROOT)
const isElsewhere = ({ paper, language }: Block) =>
  RUN_ELSEWHERE.some((one) => one.paper === paper && one.languages.includes(language))
const isPart = ({ paper, language }: Block) => PARTS.some((one) => one.paper === paper && one.language === language)
const own = blocks.filter((block) => block.language !== 'text' && !isElsewhere(block) && !isPart(block))
const isLeft = (command: string) => command in NOT_RUN
const reader = await startReader()

describe('the blocks of the papers', () => {
  it('say what they are, and each is run by what can run it', () => {
    const odd = own.filter(({ language }) => !LANGUAGES_RUN.includes(language))
    assert.deepEqual(odd.map(titleOf), [])
    assert.deepEqual([...new Set(blocks.map(({ mark }) => mark))].toSorted(), ['output', 'yours', undefined])
    const before = ({ paper, at }: Block) => own.find((block) => block.paper === paper && block.at === at - 1)
    const outputs = blocks.filter(({ mark }) => mark === 'output')
    assert.deepEqual(outputs.filter((block) => before(block) === undefined).map(titleOf), [])
    assert.ok(own.length > 50, `${own.length} were found`)
  })

  it('that are text have no command in them', () => {
    const texts = blocks.filter(({ language, mark }) => language === 'text' && mark !== 'output')
    assert.deepEqual(texts.flatMap(hiddenCommands), [])
  })

  it('that another test runs are there, and so is that test, which names the paper', () => {
    for (const { paper, languages, test } of RUN_ELSEWHERE) {
      for (const language of languages)
        assert.ok(
          blocks.some((block) => block.paper === paper && block.language === language),
          `${paper}: ${language}`,
        )
      const text = test === 'test/client/package.slow.test.ts' ? read('test/client/installed.ts') : read(test)
      assert.ok(text.includes(paper), `${test} does not read ${paper}`)
    }
  })

  it('that are parts of a program stand there word by word', () => {
    for (const { paper, language, file } of PARTS) {
      const shown = blocks.filter((block) => block.paper === paper && block.language === language)
      assert.ok(shown.length > 0, paper)
      const lines = shown.flatMap(({ code }) => code.split('\n')).filter((line) => !line.startsWith('//'))
      assert.deepEqual(
        lines.filter((line) => !read(file).includes(line)),
        [],
      )
    }
  })

  it('have every command that is listed as not run, and the tests that the reasons name are there', () => {
    const commands = new Set(own.filter(({ language }) => language === 'sh').flatMap(({ code }) => commandsOf(code)))
    assert.deepEqual(
      Object.keys(NOT_RUN).filter((command) => !commands.has(command)),
      [],
    )
    const named = Object.values(NOT_RUN).flatMap((why) => why.match(/(?:test|harness)\/[\w./-]+[\w/]/g) ?? [])
    assert.deepEqual(
      named.filter((file) => !existsSync(path.join(ROOT, file))),
      [],
    )
  })
})

describe('the papers', () => {
  const papers = [...new Set(own.map(({ paper }) => paper))]
  for (const paper of papers) {
    const some = own.filter((block) => block.paper === paper)
    it(`${paper}: ${some.length} blocks`, () => reader.run(paper, some, isLeft))
  }
})

describe('the test of the papers', () => {
  const shell = (code: string) => ['```sh', code, '```'].join('\n')

  it('reads blocks in lists, joins lines, and knows output from code', () => {
    const text = `- a\n\n  ${shell('farebox a \\\n    --b # c').replaceAll('\n', '\n  ')}\n\n\`\`\`text output\nx\n\`\`\``
    const [first, second] = blocksIn('a.md', text)
    assert.deepEqual([first?.language, first?.output, second?.mark], ['sh', 'x', 'output'])
    assert.deepEqual(commandsOf(first?.code ?? ''), ['farebox a --b'])
  })

  it('finds commands in text, and blanks that nobody fills in', () => {
    const [text] = blocksIn('a.md', '```text\nfarebox: it is wrong\n  npm run build\nkernel\n```')
    assert.deepEqual(text === undefined ? [] : hiddenCommands(text), ['  npm run build'])
    assert.deepEqual(blanksIn('a <account> # …\nb {base_url}/v1 …\ncat <<YAML'), ['<account>', '{base_url}', '…'])
  })

  it('compares what is printed line by line, in order', () => {
    assert.ok(isPrinted('a: 1\n{"b":…}', 'x\r\nA: 1\r\n\r\n{"b":[2]}\r\n'))
    assert.ok(!isPrinted('a: 1', 'a: 12'))
    assert.ok(!isPrinted('b\na', 'a\nb'))
  })

  for (const [what, block, why] of [
    ['a command that fails', shell('false'), /exit/],
    ['a refusal that is not shown', shell('curl -s "$FAREBOX_URL/v1/balance"'), /refused/],
    ['other output', `${shell('echo a')}\n\n\`\`\`text output\nb\n\`\`\``, /does not print/],
    ['a blank', shell('farebox keys show <no such thing>'), /no value/],
    ['a command of ours that is refused', shell('farebox keys show nobody'), /exit/],
    ['a program that throws', "```ts\nthrow new Error('x')\n```", /exit/],
    ['settings, which are read elsewhere', '```yaml\nsite:\n  name: x\n```', /nothing here reads/],
    ['a path that does not exist', '```http\nGET /nowhere\n```', /404/],
  ] as const)
    it(`notices ${what}`, () => assert.rejects(reader.run('a.md', blocksIn('a.md', block).slice(0, 1), isLeft), why))
})

function titleOf({ paper, at, language }: Block): string {
  return `${paper}: block ${at} is ${language === '' ? 'indented: put it in a fence with its language' : language}`
}

function read(file: string): string {
  return readFileSync(path.join(ROOT, file), 'utf8')
}
