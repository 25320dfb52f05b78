import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from './root.ts'
import { scriptArguments } from './script-arguments.ts'

type Written = {
  /** The script without its ending, which is the document's name too. */
  readonly name: string
  /** What it is written from, such as "the table of faults". */
  readonly from: string
  readonly write: () => string
}

/** A script that writes docs/<name>.md, or with `--check` says whether it is what it would write. */
export function writeDocument({ name, from, write }: Written): void {
  const document = `docs/${name}.md`
  const { values } = scriptArguments(
    `Usage: node scripts/${name}.ts [--check]: writes ${document} from ${from}, or says whether it is what it would write.`,
    { check: { type: 'boolean', default: false } },
  )
  const file = path.join(ROOT, document)
  const text = write()
  if (!values.check) writeFileSync(file, text)
  else if (readFileSync(file, 'utf8') !== text) {
    console.error(`${document} is out of date with ${from}: run node scripts/${name}.ts`)
    process.exitCode = 1
  }
}
