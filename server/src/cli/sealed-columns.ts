import { SEALED_SIGNING_KEYS } from '../authorization/signing-keys.ts'
import { SEALED_IN_TASKS } from '../gateway/plans/video-tasks.ts'
import { SEALED_APPROVALS } from '../grants/approvals.ts'
import { VERIFIERS } from '../links/attempts.ts'
import { TOKEN_KEYS } from '../links/tokens.ts'
import { SECOND_FACTORS } from '../people/second-factor.ts'
import { SEALED_MESSAGES } from '../storage/outbox.ts'
import type { Sealed } from '../storage/reseal.ts'
import { CREDENTIALS } from '../upstreams/credential.ts'

/** Everything that is under the master key. */
export const SEALED_COLUMNS: readonly Sealed[] = [
  CREDENTIALS,
  TOKEN_KEYS,
  VERIFIERS,
  ...SEALED_IN_TASKS,
  SEALED_APPROVALS,
  SEALED_MESSAGES,
  SECOND_FACTORS,
  SEALED_SIGNING_KEYS,
]
