import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadAssets } from '../pages/assets.ts'
import { createPages } from '../pages/page.ts'
import { createLinkPages } from './link-page.ts'

const pages = createLinkPages(createPages({ assets: loadAssets(), siteUrl: undefined }))
const linked = { outcome: 'linked', workspace: 'Example', username: 'fox', undoToken: 'token' } as const

describe('the page of a link that was made', () => {
  it('says what each scope means, and shows one of which nobody knows that as it is', () => {
    const scopes = ['tweet.write', 'follows.write', 'space.read', 'constructor', '__proto__', '<b>']
    const { status, body } = pages.linked({ ...linked, scopes }, '/undo')
    assert.equal(status, 200)
    const items = [...body.matchAll(/<span>([^<]*)<\/span><code>([^<]*)<\/code>/g)].map(([, means, scope]) => [
      scope,
      means,
    ])
    assert.deepEqual(items, [
      ['tweet.write', 'Post for you (no call that is sold here uses it today)'],
      ['follows.write', 'Follow and unfollow accounts'],
      ['space.read', ' (no call that is sold here uses it today)'],
      ['constructor', ' (no call that is sold here uses it today)'],
      ['__proto__', ' (no call that is sold here uses it today)'],
      ['&lt;b&gt;', ' (no call that is sold here uses it today)'],
    ])
    assert.match(body, /name="token" value="token"/)
  })

  it('shows names of people and workspaces as text', () => {
    const { body } = pages.linked({ ...linked, workspace: '<i>"', username: "<a href='x'>", scopes: [] }, '/undo')
    assert.match(body, /<title>@&lt;a href=&#39;x&#39;&gt; is linked · Farebox<\/title>/)
    assert.match(body, /<b>&lt;i&gt;&quot;<\/b>/)
  })
})
