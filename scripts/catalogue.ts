import { writeDocument } from '../harness/written-document.ts'
import { catalogue } from '../server/src/catalogue/catalogue.ts'
import { catalogueDocument } from '../server/src/catalogue/document.ts'

/** `node scripts/catalogue.ts [--check]`: writes docs/catalogue.md from the catalogue, or says whether it is what it would write. */
writeDocument({ name: 'catalogue', from: 'the catalogue', write: () => catalogueDocument(catalogue.operations) })
