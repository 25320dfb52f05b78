import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { COMMAND_DEADLINE_MS } from '../../harness/gateways.ts'
import { ROOT } from '../../harness/root.ts'

const run = promisify(execFile)
const REDOCLY = path.join(ROOT, 'node_modules/@redocly/cli/bin/cli.js')

/** What a linter that is not ours says; it asks nobody else. */
export async function lint(bytes: Buffer): Promise<{ readonly errors: number; readonly warnings: number }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'contract-'))
  try {
    const file = path.join(folder, 'contract.json')
    await writeFile(file, bytes)
    const { stdout } = await run(
      process.execPath,
      [REDOCLY, 'lint', file, '--config', path.join(ROOT, 'test/contract/redocly.yaml'), '--format', 'json'],
      {
        env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
        timeout: COMMAND_DEADLINE_MS,
        maxBuffer: 64 * 1_048_576,
      },
    ).catch((error: { stdout: string }) => error)
    const { totals } = JSON.parse(stdout)
    return { errors: totals.errors, warnings: totals.warnings }
  } finally {
    await rm(folder, { recursive: true })
  }
}
