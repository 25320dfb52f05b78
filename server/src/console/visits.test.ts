import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { unavailable } from '../kernel/fault.ts'
import { html } from '../kernel/html.ts'
import { loadAssets } from '../pages/assets.ts'
import { createCookies } from '../pages/cookies.ts'
import { createPages } from '../pages/page.ts'
import type { Asked } from '../pages/page-route.ts'
import { createVisits } from '../pages/visits.ts'
import { newToken } from '../people/tokens.ts'
import { createFrame } from './pages/frame.ts'
import { createConsoleVisits } from './visits.ts'

const WORKSPACE = '019a0000-0000-7000-8000-000000000001'
const session = Object({ personId: 'a person', isComplete: true, name: 'Mira', email: 'mira@harbour.example' })
const cookies = createCookies({ isSecure: false })
const siteUrl = 'http://site.example'
const frame = createFrame({ pages: createPages({ assets: loadAssets(), siteUrl }), baseUrl: undefined })
const workspaces = { data: [{ id: WORKSPACE, name: 'Harbour Labs', role: 'owner', suspended: null }] }
const asked: Asked = {
  visitor: Object({}),
  method: 'GET',
  path: `/console/${WORKSPACE}/test`,
  query: new Map(),
  form: new Map(),
  params: { workspace: WORKSPACE, mode: 'test' },
  host: 'site.example',
  cookie: cookies.put('session', newToken().secret).split(';')[0] ?? '',
  origin: undefined,
  fetchSite: undefined,
  acceptEncoding: undefined,
  ifNoneMatch: undefined,
}

/** A page that asks for something more than for whose workspaces there are. */
async function pageThat(answers: () => unknown, sessionOf = async () => session) {
  const visits = createConsoleVisits({
    frame,
    ids: { next: () => 'an id' },
    visits: createVisits({ people: { sessionOf }, cookies, siteUrl }),
    async account(_, { operationId }) {
      const body = operationId === 'list_workspaces' ? workspaces : answers()
      return { body, etag: undefined, isReplayed: false }
    },
  })
  const { answer } = visits.get('', async ({ ask }) => {
    const { name } = await ask(z.object({ name: z.string() }), { operationId: 'something' })
    return { status: 200, headers: {}, body: String(html`${name.trim()}`) }
  })
  return answer(asked)
}

describe('a page of the console', () => {
  it('shows what the account API tells', async () => {
    assert.equal((await pageThat(() => ({ name: ' nightly ' }))).body, 'nightly')
  })

  it('says in its frame that PostgreSQL can not be asked', async () => {
    const down = () => {
      throw unavailable(new Error('connect ECONNREFUSED'))
    }
    for (const page of [await pageThat(down), await pageThat(() => ({}), down)]) {
      assert.equal(page.status, 503)
      assert.match(page.body, /Our database does not answer/)
      assert.match(page.body, /aria-label="Console"/)
    }
  })

  it('does not tell a mistake of ours as an outage', async () => {
    await assert.rejects(
      pageThat(() => ({})),
      z.ZodError,
    )
    const wrong = () => {
      throw new TypeError('undefined is not a function')
    }
    await assert.rejects(pageThat(wrong), TypeError)
  })
})
