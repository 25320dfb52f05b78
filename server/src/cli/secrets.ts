import type { Config } from '../config.ts'
import type { Secret } from '../kernel/secret.ts'
import { secretsOf } from '../telemetry/scrubber.ts'

/** Everything in the configuration that must never be printed. */
export function secretsIn({ database, secrets }: Config): readonly Secret[] {
  const masterKeys = [secrets.master_key, secrets.previous_master_key].filter((key) => key !== undefined)
  return [...secretsOf(database.url), ...masterKeys]
}
