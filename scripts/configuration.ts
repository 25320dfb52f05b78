import { writeDocument } from '../harness/written-document.ts'
import { configurationDocument } from '../server/src/config/document.ts'

/** `node scripts/configuration.ts [--check]`: writes docs/configuration.md from the schema of settings, or says whether it is what it would write. */
writeDocument({ name: 'configuration', from: 'the schema of settings', write: () => configurationDocument() })
