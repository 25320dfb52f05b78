import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { acceptForms } from '../../server/src/http/body.ts'
import type { Family } from '../../server/src/http/families.ts'
import type { Form } from '../../server/src/pages/form-data.ts'
import { type Probe, startProbeEdge } from './probe-edge.ts'
import { converse } from './raw-http.ts'

const LIMIT = 32
const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'
const PUBLIC = { config: { access: 'public' } } as const

/** A family of forms, and one of JSON in which a route takes a form. */
const families: readonly Family[] = [
  {
    ...{ name: 'site', prefix: '/', dialect: 'problem', bodies: 'form', bodyBytes: LIMIT },
    register(scope) {
      scope.post<{ Body?: Form }>('form', PUBLIC, ({ body }) => Object.fromEntries(body ?? []))
    },
  },
  {
    ...{ name: 'data', prefix: '/data', dialect: 'problem' },
    register(scope) {
      scope.post('/json', PUBLIC, ({ body }) => body)
      scope.register(async (inner) => {
        acceptForms(inner)
        inner.post<{ Body?: Form }>('/form', { ...PUBLIC, bodyLimit: LIMIT }, ({ body }) =>
          Object.fromEntries(body ?? []),
        )
      })
    },
  },
]

let probe: Probe
before(async () => {
  probe = await startProbeEdge({ families })
})
after(() => probe.edge.drain({ idleGraceMs: 0 }))

async function post(path: string, type: string, body: string) {
  const response = await fetch(`${probe.url}${path}`, { method: 'POST', headers: { 'content-type': type }, body })
  return { status: response.status, ...Object(await response.json()) }
}

describe('a form', () => {
  for (const path of ['/form', '/data/form'])
    it(`is what ${path} takes, up to its limit, and nothing else`, async () => {
      assert.deepEqual(await post(path, FORM, 'a=1&b=two+words'), { status: 200, a: '1', b: 'two words' })
      const wrong = await post(path, JSON_TYPE, '{"a":1}')
      assert.deepEqual([wrong.status, wrong.code], [415, 'unsupported_media_type'])
      assert.match(wrong.detail, new RegExp(`Send ${FORM}\\.$`), 'it says what to send here')
      const twice = await post(path, FORM, 'a=1&a=2')
      assert.deepEqual([twice.status, twice.code], [400, 'invalid_request'])
      const large = await post(path, FORM, `a=${'x'.repeat(LIMIT)}`)
      assert.deepEqual([large.status, large.code], [413, 'body_too_large'])
      assert.match(large.detail, new RegExp(`the limit here is ${LIMIT} bytes`))
    })

  it('is not what a route of JSON takes', async () => {
    const wrong = await post('/data/json', FORM, 'a=1')
    assert.deepEqual([wrong.status, wrong.code], [415, 'unsupported_media_type'])
    assert.match(wrong.detail, /Send application\/json\.$/)
  })

  it('that its route would refuse for its length is not invited', async () => {
    const head = (bytes: number) =>
      `POST /form HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nExpect: 100-continue\r\nContent-Length: ${bytes}\r\n\r\n`
    const statuses = async (text: string) => (await converse(probe.port, text)).responses.map(({ status }) => status)
    assert.deepEqual(await statuses(`${head(3)}a=1`), [100, 200])
    assert.deepEqual(await statuses(head(LIMIT + 1)), [413])
  })
})
