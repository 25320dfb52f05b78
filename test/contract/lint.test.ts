import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { contractHere } from '../../harness/recorded-contract.ts'
import { contractOfOperation } from '../../server/src/contracts/one-operation.ts'
import { lint } from './linter.ts'

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
