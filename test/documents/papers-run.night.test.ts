import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { type Addresses, welcome } from '../../harness/development-welcome.ts'
import { processesWith } from '../../harness/processes.ts'
import { ROOT } from '../../harness/root.ts'
import {
  addressesElsewhere,
  type Block,
  beginningsOfIds,
  blanksIn,
  blocksIn,
  blocksOfPapers,
  commandsOf,
  hiddenCommands,
  isPrinted,
  isSilent,
  programsOf,
  unheard,
} from './blocks.ts'
import { LANGUAGES_RUN, startReader } from './reader.ts'

/**
 * Every command and every program of the papers is run as it stands there, paper by paper, against the whole service and its
 * sandbox. What another test runs, and what is not run at all, is listed here with the reason.
 */

type Elsewhere = { readonly paper: string; readonly languages: readonly string[]; readonly test: string }

const RUN_ELSEWHERE: readonly Elsewhere[] = [
  // From an empty PostgreSQL, with processes of its own.
  { paper: 'docs/operating.md', languages: ['sh'], test: 'test/house/operating.night.test.ts' },
  // By what reads our settings.
  { paper: 'docs/operating.md', languages: ['yaml'], test: 'test/documents/settings.test.ts' },
  { paper: 'docs/configuration.md', languages: ['yaml'], test: 'test/documents/settings.test.ts' },
  // With the package as npm installs it.
  { paper: 'client/README.md', languages: ['ts'], test: 'test/client/package.night.test.ts' },
  // By what each agent reads of its file.
  { paper: 'docs/agents.md', languages: ['json', 'toml'], test: 'test/mcp/snippets.test.ts' },
]

const INSTALLS = 'installs the packages that the tests themselves run on; .ci/run begins with it'
const NEW = 'changes the checkout; test/house/new-operation.night.test.ts does it in a copy'
const FAULTS = 'takes minutes; test/faults/ runs the same at reduced counts'
const AGENT =
  "needs an agent's program; test/agents/ sends what it sends, test/mcp/snippets.test.ts reads its address and header"

/** Commands that are not run as they stand, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm ci': INSTALLS,
  'scripts/with-node npm ci': INSTALLS,
  'npm ci && npm run dev': `${INSTALLS}; test/house/dev.night.test.ts runs npm run dev`,
  'scripts/with-node npm ci && npm run dev': INSTALLS,
  'npm install @farebox/client': 'asks npm for it; test/client/package.night.test.ts installs the package from a file',
  'npm run new -- operation weather_forecast --summary "The weather of the days to come at a place" --price 0.004 --category traffic --parameter place --upstream weather':
    NEW,
  'npm test -- test/acceptance/operations/weather-forecast.test.ts': NEW,
  'curl -i "$FAREBOX_URL/apis/v1/weather/forecast?place=Paris" -H "Authorization: Bearer $FAREBOX_KEY"': NEW,
  'npm run check': 'a step of .ci/run',
  'node scripts/contract.ts && node scripts/client-types.ts && node scripts/catalogue.ts && node scripts/cli.ts':
    'writes into the checkout; npm run check compares what they write',
  'HARNESS_SEED=1429604371 npm test -- server/src/kernel/money.test.ts':
    'runs tests inside a test; test/planted/catch.ts gives tests a seed in this way',
  'npm run bench -- overhead': 'takes minutes; test/house/bench.night.test.ts runs it reduced',
  'npm run bench -- compare 0.1.0': 'takes minutes; test/house/bench.night.test.ts runs it reduced',
  'npm run faults -- --seed 7 --seconds 60': FAULTS,
  'npm run faults -- --seed 7 --seconds 60 --json': FAULTS,
  "npm run faults -- --seconds 30 --only 'kill gateway' --only 'cut database' --keep": FAULTS,
  'npm run proof -- test/faults': FAULTS,
  'npm run proof -- test/planted/faults.night.test.ts': FAULTS,
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

/** Papers whose text has commands for the reader to copy from what `npm run dev` prints. They are compared with that. */
const COPIED: readonly string[] = ['README.md', 'examples/README.md']

const blocks = blocksOfPapers(ROOT)
const programs = programsOf(blocks)
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
    const withCommands = texts.filter((block) => hiddenCommands(block, programs).length > 0)
    assert.deepEqual(
      withCommands.map(({ paper }) => paper),
      COPIED,
    )
    const addresses = { base_url: 'http://127.0.0.1:8700', api_key: 'fb_test_a', database_url: 'postgres://a' }
    const printed = sameForm(welcome({ ...addresses, master_key: 'a' } as Addresses, '1'))
    for (const { paper, code } of withCommands)
      assert.ok(isPrinted(sameForm(code), printed), `${paper} has what npm run dev does not print:\n${code}`)
  })

  it('that show output show nothing that depends on the day', () => {
    assert.deepEqual(
      blocks.flatMap(({ output = '' }) => beginningsOfIds(output)),
      [],
    )
  })

  it('that another test runs are there, and so is that test, which names the paper', () => {
    for (const { paper, languages, test } of RUN_ELSEWHERE) {
      for (const language of languages)
        assert.ok(
          blocks.some((block) => block.paper === paper && block.language === language),
          `${paper}: ${language}`,
        )
      const text = test === 'test/client/package.night.test.ts' ? read('test/client/installed.ts') : read(test)
      assert.ok(
        text.includes(`blocksIn('${paper}'`),
        `${test} does not read the blocks of ${paper} as they are read here`,
      )
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
    const hidden = ['  npm run build', '$ claude', 'export A=1', 'scripts/with-node npm ci', 'FOO=1 npm test']
    const more = ['cd x && npm ci', 'exec farebox serve', './farebox', 'a=$(farebox accounts list)']
    const lines = ['farebox: it is wrong', ...hidden, 'kernel', ...more, 'npm/  packages; npm: its name']
    const found = blocksIn('a.md', `\`\`\`text\n${lines.join('\n')}\n\`\`\``).flatMap((text) =>
      hiddenCommands(text, programs),
    )
    assert.deepEqual(found, [...hidden, ...more])
    assert.deepEqual(blanksIn('a <account> # …\nb {base_url}/v1 …\ncat <<YAML'), ['<account>', '{base_url}', '…'])
  })

  it('refuses HTML, in which it sees no blocks', () => {
    for (const html of ['<pre>npm ci</pre>', `<details>\n${shell('npm ci')}\n</details>`])
      assert.throws(() => blocksIn('a.md', html), /a\.md has HTML/)
    assert.equal(blocksIn('a.md', `<!-- a -->\n${shell('npm ci')}`).length, 1)
  })

  it('finds beginnings of ids in output, and addresses beyond this machine', () => {
    assert.deepEqual(beginningsOfIds('{"id":"01a1…","b":"…"}\n01a1dd7c-3f…\nscript=W3sidGV4dCI6…'), [
      '01a1…',
      '01a1dd7c-3f…',
    ])
    const elsewhere = ['https://example.com/a', 'http://127.0.0.1.example']
    assert.deepEqual(
      addressesElsewhere(`curl http://127.0.0.1:1/a "${elsewhere.join('" \'')}' http://localhost`),
      elsewhere,
    )
  })

  it('knows what may be silent, and what its farebox would not notice', () => {
    for (const command of ['export A=1 B=$C', 'a=1', 'farebox contract show > a.json', 'curl -s http://127.0.0.1 -o a'])
      assert.ok(isSilent(command), command)
    for (const command of ['cat a', 'a=1 cat a', 'cat > a <<A']) assert.ok(!isSilent(command), command)
    const unnoticed = [
      'A=1 farebox a',
      'cat a | farebox b -',
      'farebox b < a',
      'cd a',
      'true && cd a',
      'export FAREBOX_A=1',
    ]
    assert.deepEqual(unheard(['farebox a | head', 'a=$(farebox b)', ...unnoticed].join('\n')), unnoticed)
  })

  it('reads all that is printed, however much', () => {
    const block = `${shell('echo first\nseq 100000')}\n\n\`\`\`text output\nfirst\n\`\`\``
    return reader.run('a.md', blocksIn('a.md', block).slice(0, 1), isLeft)
  })

  it('gives each reader money of their own, so that papers can stand in any order', () => {
    const first = own
      .filter(({ paper, output = '' }) => paper === 'README.md' && output.includes('Balance-Usd'))
      .slice(0, 1)
    assert.equal(first.length, 1)
    return reader.run('README.md', first, isLeft)
  })

  it('kills what a block leaves in the background', async () => {
    await reader.run('a.md', blocksIn('a.md', shell('sleep 600 &\necho a')), isLeft)
    assert.deepEqual(processesWith(reader.mark), [])
  })

  it('notices a block that hangs', () =>
    assert.rejects(reader.run('a.md', blocksIn('a.md', shell('sleep 600')), isLeft, 200), /has not ended/))

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
    ['an end before the end', shell('echo a\nexit 0'), /did not come to its end/],
    ['a program in place of the shell', shell('exec echo a'), /did not come to its end/],
    ['a command that prints nothing', shell('true'), /prints nothing/],
    ['a program that prints nothing', '```js\n1\n```', /prints nothing/],
    ['an address beyond this machine', shell('curl -s https://example.com'), /asks others/],
    ['an address without http', shell('curl -s example.com'), /exit code 7/],
    ['input of the command', shell('echo a | farebox keys revoke --secret -'), /would not notice/],
    ['a price list with a mistake', '```yaml\nformat: farebox-prices/1\nmodels: { a/b: { prise: 1 } }\n```', /prise/],
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

/** Without what shells do not mind: quotes, and how far apart words are. */
function sameForm(code: string): string {
  return code
    .replaceAll(/['"]/g, '')
    .replaceAll(/^ +| +$/gm, '')
    .replaceAll(/ +/g, ' ')
}
