import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, describe, it } from 'node:test'
import { request } from 'undici'
import { freePort } from '../../../harness/free-port.ts'
import { createSandbox } from '../../../sandbox/src/sandbox.ts'
import { systemClock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { createOutbound } from '../outbound/outbound.ts'
import { newToken } from '../people/tokens.ts'
import { silentLog } from '../telemetry/log.ts'
import { createIssuer, type Issuer, type IssuerReason, IssuerRefusal } from './issuer.ts'

const REDIRECT = 'https://farebox.example/sign-in/issuer/callback'
const port = await freePort()
const origin = `http://127.0.0.1:${port}`
const outbound = createOutbound({ access: 'public', allowedOrigins: [origin], clock: systemClock, log: silentLog })

async function startSandbox() {
  const sandbox = createSandbox()
  sandbox.server.listen(port, '127.0.0.1')
  await once(sandbox.server, 'listening')
  return sandbox
}

let sandbox = await startSandbox()
after(() => Promise.all([sandbox.close(), outbound.close()]))

function issuerAt(url: string, secret = 'sandbox-client-secret'): Issuer {
  const clientSecret = new Secret(secret)
  const parts = { clientId: 'sandbox-client', redirectUri: REDIRECT, outbound, clock: systemClock }
  return createIssuer({ url, clientSecret, ...parts })
}

/** What the issuer sends the browser back with, once somebody has said who they are. */
async function answerOf(address: string, decision = 'allow'): Promise<Map<string, string>> {
  const url = new URL(address)
  const said = { email: 'Mira@harbour.example', name: 'Mira Halloran', decision }
  const body = new URLSearchParams([...url.searchParams, ...Object.entries(said)]).toString()
  const { statusCode, headers } = await request(url.origin + url.pathname, { method: 'POST', body })
  assert.equal(statusCode, 303)
  const back = new URL(String(headers.location))
  assert.equal(back.origin + back.pathname, REDIRECT)
  return new Map(back.searchParams)
}

async function signIn(issuer: Issuer) {
  const { secret } = newToken()
  return issuer.finish(secret, await answerOf(await issuer.begin(secret)))
}

async function refused(work: Promise<unknown>): Promise<IssuerReason> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof IssuerRefusal, String(error))
  assert.equal(error.cause, undefined)
  return error.reason
}

describe('an issuer', () => {
  it('says who somebody is, to the browser that was sent there', async () => {
    const { subject, ...claims } = await signIn(issuerAt(`${origin}/openid`))
    assert.match(subject, /^[0-9a-f]{64}$/)
    assert.deepEqual(claims, {
      issuer: `${origin}/openid`,
      email: 'Mira@harbour.example',
      emailVerified: true,
      name: 'Mira Halloran',
    })
  })

  it('is sent a challenge, a state and a nonce, which tell nothing of each other', async () => {
    const { secret } = newToken()
    const { searchParams } = new URL(await issuerAt(`${origin}/openid`).begin(secret))
    const sent = ['state', 'nonce', 'code_challenge'].map((name) => searchParams.get(name) ?? '')
    assert.equal(new Set([...sent, secret.reveal()]).size, 4)
    for (const one of sent) assert.match(one, /^[A-Za-z0-9_-]{43}$/)
    assert.deepEqual(
      [searchParams.get('code_challenge_method'), searchParams.get('redirect_uri'), searchParams.get('scope')],
      ['S256', REDIRECT, 'openid email profile'],
    )
  })

  for (const deviant of ['wrong-nonce', 'no-nonce', 'wrong-audience', 'wrong-issuer', 'wrong-key', 'expired'])
    it(`is not believed with ${deviant}`, async () => {
      assert.equal(await refused(signIn(issuerAt(`${origin}/openid/${deviant}`))), 'not_believed')
    })

  it('does not vouch for an address that it has not verified, or that it does not give', async () => {
    assert.equal((await signIn(issuerAt(`${origin}/openid/unverified-address`))).emailVerified, false)
    const { email, emailVerified } = await signIn(issuerAt(`${origin}/openid/no-address`))
    assert.deepEqual([email, emailVerified], ['', false])
  })

  it('lets no browser finish what another has begun', async () => {
    const issuer = issuerAt(`${origin}/openid`)
    const answer = await answerOf(await issuer.begin(newToken().secret))
    assert.equal(await refused(issuer.finish(newToken().secret, answer)), 'not_believed')
  })

  it('is not heard with another state, or with none', async () => {
    const issuer = issuerAt(`${origin}/openid`)
    const { secret } = newToken()
    for (const change of [(answer: Map<string, string>) => answer.set('state', 'another'), withoutState]) {
      const answer = await answerOf(await issuer.begin(secret))
      assert.equal(await refused(issuer.finish(secret, change(answer))), 'not_believed')
    }
  })

  it('lets nobody put the code of somebody else into an answer of their own', async () => {
    const issuer = issuerAt(`${origin}/openid`)
    const [victim, own] = [newToken().secret, newToken().secret]
    const stolen = (await answerOf(await issuer.begin(victim))).get('code') ?? ''
    const answer = await answerOf(await issuer.begin(own))
    assert.equal(await refused(issuer.finish(own, new Map([...answer, ['code', stolen]]))), 'not_believed')
  })

  it('lets a code be used once', async () => {
    const issuer = issuerAt(`${origin}/openid`)
    const { secret } = newToken()
    const answer = await answerOf(await issuer.begin(secret))
    await issuer.finish(secret, answer)
    assert.equal(await refused(issuer.finish(secret, answer)), 'not_believed')
  })

  it('is not mixed up with another', async () => {
    const issuer = issuerAt(`${origin}/openid`)
    const { secret } = newToken()
    const answer = await answerOf(await issuer.begin(secret))
    const mixed = new Map([...answer, ['iss', 'https://evil.example']])
    assert.equal(await refused(issuer.finish(secret, mixed)), 'not_believed')
    assert.equal(
      await refused(issuer.finish(secret, new Map([...answer].filter(([name]) => name !== 'iss')))),
      'not_believed',
    )
  })

  it('says that somebody has said no', async () => {
    const issuer = issuerAt(`${origin}/openid`)
    const { secret } = newToken()
    assert.equal(await refused(issuer.finish(secret, await answerOf(await issuer.begin(secret), 'deny'))), 'denied')
  })

  it('that does not know our secret gives nothing', async () => {
    assert.equal(await refused(signIn(issuerAt(`${origin}/openid`, 'another'))), 'not_believed')
  })

  it('that is no issuer is not believed', async () => {
    assert.equal(await refused(issuerAt(`${origin}/nowhere`).begin(newToken().secret)), 'not_believed')
  })

  it('that is not listed and not public is not asked', async () => {
    const strict = createOutbound({ access: 'public', allowedOrigins: [], clock: systemClock, log: silentLog })
    const parts = { clientId: 'sandbox-client', clientSecret: new Secret('x'), redirectUri: REDIRECT }
    const issuer = createIssuer({ url: `${origin}/openid`, ...parts, outbound: strict, clock: systemClock })
    assert.equal(await refused(issuer.begin(newToken().secret)), 'unreachable')
    await strict.close()
  })

  it('that can not be reached is asked again the next time', async () => {
    const issuer = issuerAt(`${origin}/openid`)
    await sandbox.close()
    assert.equal(await refused(issuer.begin(newToken().secret)), 'unreachable')
    sandbox = await startSandbox()
    assert.equal((await signIn(issuer)).emailVerified, true)
  })
})

function withoutState(answer: Map<string, string>): Map<string, string> {
  answer.delete('state')
  return answer
}
