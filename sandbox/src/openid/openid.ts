import { hash, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readBody } from '../read-body.ts'
import { sendJson } from '../send-json.ts'
import { CLIENT_ID, CLIENT_SECRET, clientCredential } from '../upstreams/platform-client.ts'
import { createSigner, type Signer } from './id-token.ts'
import { openidPage } from './openid-page.ts'

/** An OpenID provider: whoever comes is who they say. Under another name it is one that does something wrong. */
export const OPENID = '/openid'

/** What a wrong one does to the ID token, each by a name in its address. */
const DEVIANTS = {
  'wrong-nonce': { nonce: 'somebody-else-s' },
  'no-nonce': { nonce: undefined },
  'wrong-audience': { aud: 'another-client' },
  'wrong-issuer': { iss: 'https://evil.example' },
  'unverified-address': { email_verified: false },
  'no-address': { email: undefined, email_verified: undefined },
  expired: { exp: 1_000_000_000 },
  'wrong-key': {},
} as const satisfies Readonly<Record<string, Readonly<Record<string, unknown>>>>
type Deviant = keyof typeof DEVIANTS

type Grant = {
  readonly email: string
  readonly name: string
  readonly nonce: string | null
  readonly challenge: string
  readonly redirectUri: string
  readonly issuer: string
  readonly deviant: Deviant | undefined
}

type Visit = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly query: string
}

const GRANTS_LIMIT = 1000
const TOKEN_SECONDS = 300
const PARAMETERS = [
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
] as const
const S256_CHALLENGE = /^[A-Za-z0-9_-]{43}$/

export class OpenidProvider {
  readonly #grants = new Map<string, Grant>()
  #signers: { readonly own: Signer; readonly other: Signer } | undefined
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Made when they are first needed: most sandboxes never are an issuer. */
  get #keys() {
    this.#signers ??= { own: createSigner('sandbox-1'), other: createSigner('sandbox-1') }
    return this.#signers
  }

  answer({ request, response, path, query }: Visit): void {
    const place = placeOf(path)
    if (place === undefined) {
      sendJson(response, 404, { error: `There is no issuer at ${path}.` })
      return
    }
    const issuer = `http://${request.headers.host}${place.base}`
    const at = `${request.method} ${place.rest}`
    if (at === 'GET /.well-known/openid-configuration') sendJson(response, 200, metadataOf(issuer))
    else if (at === 'GET /jwks') sendJson(response, 200, { keys: [this.#keys.own.jwk] })
    else if (at === 'GET /authorize') ask(response, new URLSearchParams(query))
    else if (at === 'POST /authorize' || at === 'POST /token')
      readBody(request, (body) => {
        const form = new URLSearchParams(Buffer.isBuffer(body) ? body.toString() : '')
        if (at === 'POST /token') this.#exchange(request, response, form)
        else this.#decide(response, form, issuer, place.deviant)
      })
    else sendJson(response, 404, { error: `The issuer has nothing at ${place.rest}.` })
  }

  #decide(response: ServerResponse, form: URLSearchParams, issuer: string, deviant: Deviant | undefined): void {
    const wrong = wrongWith(form)
    if (wrong !== undefined) {
      sendJson(response, 400, { error: wrong })
      return
    }
    const redirectUri = form.get('redirect_uri') ?? ''
    const back = new URL(redirectUri)
    const state = form.get('state')
    if (state !== null) back.searchParams.set('state', state)
    back.searchParams.set('iss', issuer)
    if (form.get('decision') === 'allow') {
      const code = randomBytes(24).toString('base64url')
      const [email, name] = [form.get('email') ?? '', form.get('name') ?? '']
      const challenge = form.get('code_challenge') ?? ''
      if (this.#grants.size >= GRANTS_LIMIT) this.#grants.clear()
      this.#grants.set(code, { email, name, nonce: form.get('nonce'), challenge, redirectUri, issuer, deviant })
      back.searchParams.set('code', code)
    } else back.searchParams.set('error', 'access_denied')
    response.writeHead(303, { location: back.href, 'cache-control': 'no-store' }).end()
  }

  #exchange(request: IncomingMessage, response: ServerResponse, form: URLSearchParams): void {
    if (!isClient(request, form)) {
      sendJson(response, 401, { error: 'invalid_client' })
      return
    }
    const code = form.get('code') ?? ''
    const grant = this.#grants.get(code)
    this.#grants.delete(code)
    const isRight =
      form.get('grant_type') === 'authorization_code' &&
      form.get('redirect_uri') === grant?.redirectUri &&
      hash('sha256', form.get('code_verifier') ?? '', 'base64url') === grant?.challenge
    if (grant === undefined || !isRight) {
      sendJson(response, 400, { error: 'invalid_grant' })
      return
    }
    const token = {
      access_token: randomBytes(24).toString('base64url'),
      token_type: 'Bearer',
      expires_in: TOKEN_SECONDS,
    }
    sendJson(response, 200, { ...token, id_token: this.#idTokenOf(grant) }, [['cache-control', 'no-store']])
  }

  #idTokenOf({ email, name, nonce, issuer, deviant }: Grant): string {
    const nowSeconds = Math.floor(this.#nowMs() / 1000)
    const signer = deviant === 'wrong-key' ? this.#keys.other : this.#keys.own
    return signer.sign({
      ...{
        iss: issuer,
        sub: hash('sha256', email.toLowerCase()),
        aud: CLIENT_ID,
        iat: nowSeconds,
        exp: nowSeconds + TOKEN_SECONDS,
      },
      ...{ email, email_verified: true, name, nonce: nonce ?? undefined },
      ...(deviant && DEVIANTS[deviant]),
    })
  }
}

function metadataOf(issuer: string) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    code_challenge_methods_supported: ['S256'],
    scopes_supported: ['openid', 'email', 'profile'],
    authorization_response_iss_parameter_supported: true,
  }
}

function isClient({ headers }: IncomingMessage, form: URLSearchParams): boolean {
  const isPosted = form.get('client_id') === CLIENT_ID && form.get('client_secret') === CLIENT_SECRET
  return isPosted || clientCredential(headers) === 'right'
}

/** `/openid` itself, or one that deviates below it. */
function placeOf(path: string): { base: string; rest: string; deviant: Deviant | undefined } | undefined {
  const below = path.slice(OPENID.length)
  const [, word = ''] = below.split('/')
  if (isDeviant(word)) return { base: `${OPENID}/${word}`, rest: below.slice(word.length + 1), deviant: word }
  return below.startsWith('/') ? { base: OPENID, rest: below, deviant: undefined } : undefined
}

function isDeviant(word: string): word is Deviant {
  return Object.hasOwn(DEVIANTS, word)
}

function ask(response: ServerResponse, asked: URLSearchParams): void {
  const wrong = wrongWith(asked)
  if (wrong !== undefined) {
    sendJson(response, 400, { error: wrong })
    return
  }
  const hidden = PARAMETERS.flatMap((name): (readonly [string, string])[] => {
    const value = asked.get(name)
    return value === null ? [] : [[name, value]]
  })
  const page = openidPage({ email: asked.get('login_hint') ?? 'mira@harbour.example', hidden })
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': Buffer.byteLength(page) })
  response.end(page)
}

function wrongWith(asked: URLSearchParams): string | undefined {
  if (asked.get('response_type') !== 'code') return 'response_type must be code.'
  if (asked.get('client_id') !== CLIENT_ID) return 'client_id is not that of an app.'
  if (!/^https?:\/\/[^#]+$/.test(asked.get('redirect_uri') ?? '') || !URL.canParse(asked.get('redirect_uri') ?? ''))
    return 'redirect_uri must be an address with http or https and without a fragment.'
  if (!(asked.get('scope') ?? '').split(' ').includes('openid')) return 'scope must have openid.'
  if (asked.get('code_challenge_method') !== 'S256' || !S256_CHALLENGE.test(asked.get('code_challenge') ?? ''))
    return 'code_challenge must be a SHA-256 hash in base64url, with the method S256.'
  return undefined
}
