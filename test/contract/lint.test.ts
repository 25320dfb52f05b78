import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { COMMAND_DEADLINE_MS } from '../../harness/gateways.ts'
import { contractHere } from '../../harness/recorded-contract.ts'
import { ROOT } from '../../harness/root.ts'
import { contractOfOperation } from '../../server/src/contracts/one-operation.ts'

const run = promisify(execFile)
const REDOCLY = path.join(ROOT, 'node_modules/@redocly/cli/bin/cli.js')

/** What a linter that is not ours says; it asks nobody else. */
async function lint(bytes: Buffer): Promise<{ readonly errors: number; readonly warnings: number }> {
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

const { bytes } = contractHere()
const CLEAN = { errors: 0, warnings: 0 }

describe('the linter of Redocly', () => {
  it('finds nothing in the contract', async () => assert.deepEqual(await lint(bytes), CLEAN))

  it('finds nothing in that of one operation', async () =>
    assert.deepEqual(await lint(contractOfOperation(bytes, 'messages') ?? assert.fail()), CLEAN))

  it('finds what is wrong', async () => {
    const document = JSON.parse(bytes.toString('utf8'))
    document.paths['/v1/usage'].get.parameters[0].schema = { $ref: '#/components/schemas/nothing' }
    assert.notEqual((await lint(Buffer.from(JSON.stringify(document)))).errors, 0)
  })

  it('is told nothing of one operation alone: that which always refuses', () => {
    const operations = Object.values(JSON.parse(bytes.toString('utf8')).paths).flatMap((one) =>
      Object.values(Object(one)),
    )
    const refusing = operations.filter(
      (one) => !Object.keys(Object(one).responses).some((status) => status.startsWith('2')),
    )
    assert.deepEqual(
      refusing.map((one) => Object(one).operationId),
      ['get_task_by_query'],
    )
  })
})
