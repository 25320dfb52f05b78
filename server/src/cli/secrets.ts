import type { Config } from '../config.ts'
import type { Secret } from '../kernel/secret.ts'
import { secretsOf } from '../telemetry/scrubber.ts'

/** Everything in the configuration that must never be printed. */
export function secretsIn({ database, secrets, mail, people }: Config): readonly Secret[] {
  const keys = [secrets.master_key, secrets.previous_master_key, people.issuer?.client_secret]
  return [...secretsOf(database.url), ...(mail.url === undefined ? [] : secretsOf(mail.url)), ...keys.filter(isThere)]
}

const isThere = (secret: Secret | undefined): secret is Secret => secret !== undefined
