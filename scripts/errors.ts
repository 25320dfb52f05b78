import { writeDocument } from '../harness/written-document.ts'
import { errorGuide } from '../server/src/http/error-guide.ts'

/** `node scripts/errors.ts [--check]`: writes docs/errors.md from the table of faults, or says whether it is what it would write. */
writeDocument({ name: 'errors', from: 'the table of faults', write: () => errorGuide() })
