import { after, describe, it } from 'node:test'
import { ACCOUNT_PROBES } from './account.ts'
import { AGENT_PROBES } from './agents.ts'
import { CALL_FAILURE_PROBES } from './call-failures.ts'
import { CALL_PROBES } from './calls.ts'
import { DATA_AND_RERANK_PROBES } from './data.ts'
import { LINK_PROBES } from './links.ts'
import { MODEL_PROBES } from './models.ts'
import type { Probe } from './probe.ts'
import { SITE_PROBES } from './site.ts'
import { startStack } from './stack.ts'
import { STREAM_PROBES } from './streams.ts'
import { TASK_PROBES } from './tasks.ts'
import { USAGE_PROBES } from './usage.ts'

/** The specification, statement by statement, tried from outside by somebody who knows nothing else. */
const SECTIONS: Readonly<Record<string, readonly Probe[]>> = {
  'credentials and records': ACCOUNT_PROBES,
  'the usage report': USAGE_PROBES,
  'every paid endpoint': CALL_PROBES,
  'every paid endpoint, where something goes wrong': CALL_FAILURE_PROBES,
  models: MODEL_PROBES,
  streams: STREAM_PROBES,
  'data and reranking': DATA_AND_RERANK_PROBES,
  tasks: TASK_PROBES,
  links: LINK_PROBES,
  'the website': SITE_PROBES,
  agents: AGENT_PROBES,
}

const stack = await startStack()
after(stack.stop)

for (const [section, probes] of Object.entries(SECTIONS))
  describe(section, () => {
    for (const [statement, check] of probes) it(statement, () => check(stack))
  })
