import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { contractHere } from '../../harness/recorded-contract.ts'
import { bindSandbox, makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { startShell } from '../house/command-shell.ts'
import { connect } from '../ledger/world.ts'
import { operationIdsIn } from './views.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
after(() => pools.close())
const { farebox, said } = startShell({ FAREBOX_DATABASE_URL: database.url })
const lineOf = async (word: string, ...list: readonly string[]) =>
  (await said(...list)).split('\n').find((line) => line.startsWith(`${word}  `))

describe('farebox operations and categories', () => {
  it('list what is sold, in which mode, and what has no upstream', async () => {
    assert.equal((await said('operations', 'list')).trim().split('\n').length, catalogue.operations.length)
    await bindSandbox({ pool: pools.rest, masterKey: makeMasterKey(), sandboxUrl: 'http://127.0.0.1:9' })
    assert.equal(await lineOf('rerank', 'operations', 'list'), 'rerank  models  sold in test')
    await pools.rest.query("update upstreams set enabled = false where slot = 'traffic'")
    const traffic = 'website_traffic_engagement'
    assert.equal(await lineOf(traffic, 'operations', 'list'), `${traffic}  traffic  not sold: no upstream`)
    assert.equal(await lineOf('traffic', 'categories', 'list'), 'traffic  0 of 1 operations sold')
    const json = (await said('operations', 'list', '--json')).trim().split('\n')
    assert.deepEqual(Object(JSON.parse(json[0] ?? '')).modes, ['test'])
  })

  it('off stops the sale with a reason, and on sells it again', async () => {
    const off = await said('operations', 'off', 'rerank', '--reason', 'its provider is gone')
    assert.match(off, /^Operation rerank is off: calls are refused with 404 not_sold\. Quotes given before can be used/)
    assert.match(
      (await lineOf('rerank', 'operations', 'list')) ?? '',
      /^rerank {2}models {2}off since \S+Z: its provider is gone$/,
    )
    const again = await said('operations', 'off', 'rerank', '--reason', 'for good')
    assert.equal(again, 'Operation rerank was off already. The reason is now: for good\n')
    assert.match((await said('categories', 'off', 'models', '--reason', 'a holiday')).trim(), /^Category models is off/)
    const on = await said('operations', 'on', 'rerank', '--reason', 'back')
    assert.equal(
      on,
      'Operation rerank is on.\nIts category models is off, so it is still not sold: see farebox categories on models.\n',
    )
    assert.match((await lineOf('rerank', 'operations', 'list')) ?? '', /off with its category since \S+Z: a holiday$/)
    assert.match(
      (await lineOf('models', 'categories', 'list')) ?? '',
      /^models {2}0 of \d+ operations sold {2}off since/,
    )
    assert.equal(await said('categories', 'on', 'models', '--reason', 'over'), 'Category models is on.\n')
    const twice = await said('categories', 'on', 'models', '--reason', 'over')
    assert.equal(twice, 'Category models was on already. Nothing was changed.\n')
    const audit = await said('audit', '--json')
    assert.ok(audit.includes('"operation.switched_off"') && audit.includes('its provider is gone'))
  })

  it('refuse what there is not, and a switch without words for its reason', async () => {
    for (const [line, reason] of [
      [
        ['operations', 'off', 'nothing', '--reason', 'x'],
        /there is no operation "nothing": see farebox operations list/,
      ],
      [['operations', 'off', 'rerank', '--reason', ' '], /--reason must have from 1 to 300 characters/],
      [['categories', 'off', 'cats', '--reason', 'x'], /there is no category "cats": use one of models, video/],
    ] as const) {
      const { code, output } = await farebox(...line)
      assert.equal(code, 1)
      assert.match(output, reason)
    }
  })

  it('leave their mark on the contract that is shown as processes serve it', async () => {
    await said('operations', 'off', 'tag_detail', '--reason', 'x')
    const shown = JSON.parse(await said('contract', 'show', '--sold'))
    const ids = operationIdsIn(shown)
    assert.ok(!ids.includes('tag_detail') && !ids.includes('website_traffic_engagement') && ids.includes('rerank'))
    assert.equal(await said('contract', 'show'), contractHere().bytes.toString())
    await said('operations', 'on', 'tag_detail', '--reason', 'x')
  })
})
