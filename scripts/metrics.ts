import { writeDocument } from '../harness/written-document.ts'
import { metricsDocument } from '../server/src/telemetry/metrics-document.ts'

/** `node scripts/metrics.ts [--check]`: writes docs/metrics.md from where metrics are declared, or says whether it is what it would write. */
writeDocument({ name: 'metrics', from: 'the list of metrics', write: () => metricsDocument() })
