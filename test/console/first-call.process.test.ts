import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startChromium } from '../../harness/chromium.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { join, makeTeam } from '../account/house.ts'
import { startConsole } from './console-house.ts'

const postgres = await startPostgres()
after(() => postgres.remove())
await migrate({ url: new Secret(postgres.url()), log: silentLog })
const house = await startConsole(postgres.url())
after(house.stop)
const browser = await startChromium()
after(() => browser.close())
const { workspaceId, secret } = await makeTeam(house.pool)
const { headers } = await join(house.pool, workspaceId)

describe('the first page of the console', () => {
  it('makes a key, sees its call appear with the cost, and says when PostgreSQL can not be asked', async () => {
    const context = await browser.newContext({ baseURL: house.siteUrl })
    const [name = '', value = ''] = (headers.cookie ?? '').split('=', 2)
    await context.addCookies([{ name, value, url: house.siteUrl }])
    const page = await context.newPage()
    const frowned: string[] = []
    page.on('console', (message) => frowned.push(message.text()))
    await page.goto(`/console/${workspaceId}/test`)
    const before = await page.locator('[data-wait-title]').textContent()
    assert.equal(before, 'Waiting for your first call …')
    await page.goto(`/console/${workspaceId}/live`)
    await page.getByRole('button', { name: 'Make a key' }).click()
    assert.match((await page.locator('#secret').textContent()) ?? '', /^fb_live_/)

    await page.goto(`/console/${workspaceId}/test`)
    const answer = await fetch(`${house.baseUrl}/v1/rerank`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: '{"query": "a quick animal", "documents": ["a snail", "a fox"]}',
    })
    assert.equal(answer.status, 200, await answer.text())
    await page.getByText('rerank is here').waitFor()
    const cost = answer.headers.get('x-farebox-cost-usd')
    assert.equal(await page.locator('[data-cost-charged]').textContent(), `$${cost}`)
    assert.deepEqual(frowned, [])

    await postgres.stop()
    const refused = await page.reload()
    assert.equal(refused?.status(), 503)
    await page.getByRole('heading', { level: 1, name: 'We can’t look now' }).waitFor()
    await page.getByRole('navigation', { name: 'Console' }).getByText('Overview').waitFor()
    // What was filled in comes back, under the same idempotency key.
    const sent = await page.request.post(`/console/${workspaceId}/live/first-key`, {
      form: { form_token: headers['x-form-token'] ?? '', idempotency_key: 'kept', name: 'mine', password: 'not this' },
      headers: { origin: house.siteUrl, 'sec-fetch-site': 'same-origin' },
    })
    const text = await sent.text()
    assert.equal(sent.status(), 503, text)
    assert.match(text, /name="idempotency_key" value="kept"/)
    assert.match(text, /name="name" value="mine"/)
    assert.doesNotMatch(text, /not this/)
  })
})
