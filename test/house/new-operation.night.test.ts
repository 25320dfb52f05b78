import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { copyOfProject, runInCopy } from '../../harness/project-copy.ts'

const copy = copyOfProject()
const read = (file: string) => readFileSync(path.join(copy, file), 'utf8')
const make = (...args: readonly string[]) => runInCopy(copy, 'scripts/new.ts', ...args)
const check = (...names: readonly string[]) => runInCopy(copy, 'scripts/check.ts', ...names)
const tool = (name: string, ...args: readonly string[]) =>
  spawnSync(path.join(copy, 'node_modules/.bin', name), args, { cwd: copy, encoding: 'utf8' })

/** As CONTRIBUTING.md has it, for the shell. */
const [, WEATHER = ''] = /^npm run new -- (operation (?:.*\\\n)*.*)$/m.exec(read('CONTRIBUTING.md')) ?? []
/** One more of a provider that is there, with everything else said too. */
const NEWS = [
  ...['operation', 'company_news', '--summary', 'What is written about a company', '--price', '0.0125'],
  ...['--category', 'finance', '--method', 'post', '--path', '/apis/v1/{social_a}/company/news'],
  ...['--parameter', 'company', '--parameter', 'since', '--upstream', 'financial', '--upstream-path', '/v2/news'],
  ...['--asks', 'headlines press'],
]
const TESTS = ['weather-forecast', 'company-news'].map((name) => `test/acceptance/operations/${name}.test.ts`)
const SOURCES = ['weather-forecast', 'company-news'].flatMap((name) => [
  `server/src/catalogue/operations/${name}.ts`,
  `sandbox/src/answers/${name}.ts`,
])
const LISTS = ['server/src/catalogue/catalogue.ts', 'sandbox/src/answers.ts']
const DOCUMENTS = ['document of the catalogue', 'document of the commands']

describe('npm run new -- operation', () => {
  it('says in sentences what is missing or wrong, and makes nothing', () => {
    const { code, output } = make('operation', 'weather_forecast')
    assert.equal(code, 1, output)
    assert.match(
      output,
      /^Give --summary .*\nGive --price, in USD .*\nGive --category: one of social, .*\nnpm run new -- --help/,
    )
    const help = make('--help')
    assert.deepEqual([help.code, /^Usage: npm run new -- operation <id>/.test(help.output)], [0, true])
    for (const place of [
      'server/src/catalogue/operations/weather-forecast.ts',
      'sandbox/src/answers/weather-forecast.ts',
    ])
      assert.ok(!existsSync(path.join(copy, place)))
  })

  it('makes operations whose tests are green at once', () => {
    const asWritten = spawnSync('sh', ['-c', `exec "$0" scripts/new.ts ${WEATHER}`, process.execPath], {
      cwd: copy,
      encoding: 'utf8',
    })
    assert.equal(asWritten.status, 0, asWritten.stderr)
    assert.match(asWritten.stdout, /\nNow: {2}npm test -- test\/acceptance\/operations\/weather-forecast\.test\.ts\n/)
    const made = make(...NEWS)
    assert.equal(made.code, 0, made.output)
    const { code, output } = runInCopy(copy, '--test', '--test-reporter=tap', ...TESTS)
    assert.equal(code, 0, output)
    assert.match(output, /^# pass 8$/m)
  })

  it('leaves nothing for npm run check to find', () => {
    const { code, output } = check('contract', "the client's types of the contract", ...DOCUMENTS)
    assert.equal(code, 0, output)
    // All of the project takes long to lint and to type, and the test reaches all of it.
    const lint = tool('biome', 'check', '--error-on-warnings', ...TESTS, ...SOURCES, ...LISTS)
    assert.equal(lint.status, 0, lint.stdout + lint.stderr)
    const settings = { extends: './tsconfig.json', include: [], files: SOURCES }
    writeFileSync(path.join(copy, 'new.json'), JSON.stringify(settings))
    const types = tool('tsc', '-p', 'new.json')
    assert.equal(types.status, 0, types.stdout + types.stderr)
    for (const document of ['docs/catalogue.md', 'client/src/contract.ts', 'docs/releases/contracts/gateway.json'])
      for (const id of ['weather_forecast', 'company_news']) assert.match(read(document), new RegExp(id), document)
  })

  it('needs no other test to be told of them', () => {
    const { code, output } = runInCopy(
      copy,
      ...['--test', '--test-reporter=tap', 'harness/attempts.process.test.ts', 'sandbox/src/upstreams.test.ts'],
      ...['test/mcp/search.test.ts', 'test/lists.test.ts'],
    )
    assert.equal(code, 0, output)
    assert.match(output, /ok \d+ - weather_forecast: 1 requests and 0 refreshes, and not one more/)
    assert.match(output, /ok \d+ - financial POST \/v2\/news answers the right key/)
  })

  it('npm run check names what a list forgets, an answer that nobody asks for, and an operation without one', () => {
    const forget = (list: string, constant: string) => {
      const text = read(list).replace(new RegExp(`^import .*\\b${constant}\\b.*\\n`, 'm'), '')
      writeFileSync(path.join(copy, list), text.replace(new RegExp(`,\\s*${constant}\\b`), ''))
    }
    forget('server/src/catalogue/catalogue.ts', 'weatherForecast')
    forget('sandbox/src/answers.ts', 'companyNews')
    const { code, output } = check('architecture')
    assert.equal(code, 1, output)
    assert.match(output, /operations\/weather-forecast\.ts makes weather_forecast, which .*catalogue\.ts does not list/)
    assert.match(output, /No operation asks for the answer to GET \/weather\/forecast of weather/)
    assert.match(output, /answers\/company-news\.ts makes the answer to POST \/v2\/news of financial, which /)
    assert.match(output, /The sandbox does not answer company_news \(POST \/v2\/news of financial\)/)
  })
})
