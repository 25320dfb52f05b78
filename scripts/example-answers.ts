import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { answerOf } from '../harness/example-answers.ts'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { catalogue } from '../server/src/catalogue/catalogue.ts'

/** Records what the pages of operations show as their answers. The key needs a linked account (docs/links.md). */
const FILE = 'server/src/site/catalogue/example-answers.json'
scriptArguments(
  `Usage: node scripts/example-answers.ts, with BASE_URL=… and API_KEY=… before it: makes the call on the page of each operation at an installation on the sandbox, such as that of npm run dev, and writes ${FILE}.`,
  {},
)
const { BASE_URL: url, API_KEY: key } = process.env
if (url === undefined || key === undefined)
  throw new Error('BASE_URL and API_KEY say where to call, and with which key.')
const answers: Record<string, unknown> = {}
for (const operation of catalogue.operations) answers[operation.id] = await answerOf(url, key, operation)
const on = new Date().toISOString().slice(0, 10)
writeFileSync(path.join(ROOT, FILE), `${JSON.stringify({ on, answers }, null, 2)}\n`)
