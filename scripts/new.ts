import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { CATEGORIES, idsOfContract, LISTS, makeOperation, problemsWith } from '../harness/new-operation.ts'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/** `npm run new -- operation <id> …`: an operation with its test and its answer of the sandbox, entered in all lists and documents. */
const USAGE = `Usage: npm run new -- operation <id> --summary <what it does> --price <USD> --category <one> [options]

Makes a data endpoint with a price for each call: its file in the catalogue, its answer in the sandbox, and its test.
Enters it in their lists, and writes the contract, the client's types and the documents anew.

  <id>             lower-case words with _ between them, such as weather_forecast
  --summary        what it does, without a full stop
  --price          in USD for a call, such as 0.004
  --category       one of ${CATEGORIES.join(', ')}; it decides which scope of keys and mandates allows it,
                   and under which heading people and agents find it
  --method         GET (default) or POST
  --path           where callers ask for it (default: /apis/v1/<id with slashes>)
  --parameter      one that has to be given (default: query); may stand several times
  --upstream       the slot of the provider, one that is there or a new one (default: <id>)
  --upstream-path  where the provider is asked (default: --path without /apis/v1)
  --credential     header of the provider's key: x-api-key (default), api-key or authorization
  --asks           words that people use for it, by which agents find it (default: words of <id> and parameters)

Example: npm run new -- operation weather_forecast --summary "The weather of the days to come" --price 0.004 --category traffic`

const { values, positionals } = scriptArguments(
  USAGE,
  {
    summary: { type: 'string', default: '' },
    price: { type: 'string', default: '' },
    category: { type: 'string', default: '' },
    method: { type: 'string', default: 'GET' },
    path: { type: 'string' },
    parameter: { type: 'string', multiple: true, default: ['query'] },
    upstream: { type: 'string' },
    'upstream-path': { type: 'string' },
    credential: { type: 'string' },
    asks: { type: 'string' },
  },
  { allowPositionals: true },
)
const [template, id, ...others] = positionals
if (template !== 'operation') refuse([`There is no template "${template ?? ''}". There is: operation.`])
if (id === undefined || others.length > 0) refuse(['Give one id: npm run new -- operation weather_forecast …'])

const { parameter: parameters } = values
const words = id.split('_')
const at = values.path ?? `/apis/v1/${words.join('/')}`
const wanted = {
  ...{ id, parameters, summary: values.summary.trim(), price: values.price, category: values.category },
  ...{ method: values.method.toUpperCase(), path: at, credential: values.credential },
  slot: values.upstream ?? id,
  upstreamPath: values['upstream-path'] ?? at.replace('/apis/v1', ''),
  asks: values.asks ?? [...new Set([...words, ...parameters])].join(' '),
}
const problems = problemsWith(wanted, { root: ROOT, ids: idsOfContract() })
if (problems.length > 0) refuse(problems)

const made = makeOperation(wanted, ROOT)
run(path.join(ROOT, 'node_modules/.bin/biome'), 'check', '--write', ...Object.values({ ...made, ...LISTS }))
// The client's types come from the contract. What is sold is in the papers of the catalogue and of the commands.
for (const script of ['contract', 'client-types', 'catalogue', 'cli']) run(process.execPath, `scripts/${script}.ts`)
console.log(`Made ${id}:
  ${made.operation}: what it takes, gives and costs
  ${made.answer}: what the sandbox answers in the provider's place
  ${made.test}: its test
Entered it in ${LISTS.operations} and ${LISTS.answers}; the first word of its path is in ${LISTS.words}.
Wrote the contract, the client's types, docs/catalogue.md and docs/cli.md anew.

Now:  npm test -- ${made.test}
      npm run check
Then say in the three files what the provider really takes, gives and charges for: CONTRIBUTING.md, Adding an operation.`)

function refuse(sentences: readonly string[]): never {
  console.error([...sentences, 'npm run new -- --help lists every option.'].join('\n'))
  process.exit(1)
}

/** Says what failed, which is a defect of ours or of an edit that is under way, and ends. */
function run(program: string, ...args: readonly string[]): void {
  try {
    execFileSync(program, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' })
  } catch (error) {
    const { stdout = '', stderr = '' } = Object(error)
    console.error(
      `${stdout}${stderr}\nThe files were made, but this failed: ${path.basename(program)} ${args.join(' ')}`,
    )
    console.error('Mend that, then run npm run check, which names what is left to do.')
    process.exit(1)
  }
}
