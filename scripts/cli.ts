import { writeDocument } from '../harness/written-document.ts'
import { commandDocument } from '../server/src/cli/document.ts'
import { createProgram } from '../server/src/cli/program.ts'

/** `node scripts/cli.ts [--check]`: writes docs/cli.md from the command line itself, or says whether it is what it would write. */
const program = await createProgram({ serve: () => Promise.resolve() })
writeDocument({ name: 'cli', from: 'the command line', write: () => commandDocument(program) })
