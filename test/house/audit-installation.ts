import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { startSandbox } from '../../harness/sandbox.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { connect } from '../ledger/world.ts'
import { createScenarios } from './audit-commands.ts'
import { startShell } from './command-shell.ts'

const SANDBOX_KEY = 'sandbox-key'

/** A database, a vendor and a command line, for the test file that starts it; and what is to be tried of each writing command. */
export async function startAuditInstallation() {
  const { url: databaseUrl } = await freshDatabase()
  const { pools } = connect(databaseUrl)
  const pool = pools.rest
  after(() => pools.close())
  const sandbox = await startSandbox()
  after(() => sandbox.stop())
  const folder = mkdtempSync(path.join(tmpdir(), 'audit-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const credentialFile = path.join(folder, 'credential')
  writeFileSync(credentialFile, SANDBOX_KEY)

  const [masterKey, nextMasterKey] = [makeMasterKey(), makeMasterKey()]
  const env = {
    ...process.env,
    // It has a row of its own.
    FAREBOX_PEOPLE_TEST_CREDIT: '0',
    FAREBOX_DATABASE_URL: databaseUrl,
    FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
    // Where the links of invitations lead.
    FAREBOX_HTTP_SITE_URL: 'https://site.example.com',
    FAREBOX_HTTP_TRUSTED_PROXIES: 'none',
  }
  const rotatedEnv = {
    ...env,
    FAREBOX_SECRETS_MASTER_KEY: nextMasterKey.reveal(),
    FAREBOX_SECRETS_PREVIOUS_MASTER_KEY: masterKey.reveal(),
  }
  const { said } = startShell(env)
  const scenarios = createScenarios({
    ...{ pool, databaseUrl, said, credentialFile },
    seal: createSeal({ current: masterKey }),
    vendorUrl: sandbox.deviant('openai', 'ignores-max-tokens'),
  })
  /** The environment that a command is to run in. */
  const envOf = (name: string) => (name === 'secrets rotate' ? rotatedEnv : env)
  return { databaseUrl, pool, folder, said, env, envOf, scenarios, masterKeys: [masterKey, nextMasterKey] }
}
