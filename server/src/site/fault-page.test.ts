import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Fault, unavailable } from '../kernel/fault.ts'
import { loadAssets } from '../pages/assets.ts'
import { createPages } from '../pages/page.ts'
import { createSiteFaultPage } from './fault-page.ts'
import { createShell } from './shell.ts'

const pages = createPages({ assets: loadAssets(), siteUrl: undefined })
const faultPage = createSiteFaultPage({
  pages,
  shell: createShell({ pages, siteUrl: undefined, show: new Set(['proof', 'reference']) }),
})
const ID = '01a1e102-0b3d-7000-93c6-1f2e80d7a4b5'

describe('what the website says of a fault', () => {
  it('is, where the ledger is down, what that means for whom, and where to see how it stands', () => {
    const { status, headers, body, isPublic } = faultPage(unavailable(new Error('a secret cause')), ID)
    assert.equal(status, 503)
    assert.equal(isPublic, undefined)
    assert.equal(headers['cache-control'], 'no-store')
    assert.match(body, /Nothing was charged/)
    assert.match(body, /href="\/status"/)
    assert.ok(body.includes(ID))
    assert.doesNotMatch(body, /a secret cause/)
  })

  it('is, where nothing is, where to go on', () => {
    const { status, body } = faultPage(new Fault('route_not_found'), ID)
    assert.equal(status, 404)
    for (const href of ['/catalogue', '/models', '/docs', '/reference'])
      assert.ok(body.includes(`href="${href}"`), href)
  })

  it('is as everywhere else for all others', () => {
    const { status, body } = faultPage(new Fault('form_refused'), ID)
    assert.equal(status, 403)
    assert.match(body, /form_refused/)
  })
})
