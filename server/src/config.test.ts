import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { inspect } from 'node:util'
import { catalogue } from './catalogue/catalogue.ts'
import { ConfigError, loadConfig, missingForPeople, modelBodyBytes, RESERVED_MODEL_SEGMENTS } from './config.ts'
import { usd } from './kernel/money.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'farebox-config-'))
after(() => rmSync(folder, { recursive: true }))

const URL = 'postgres://farebox:canary-91c2@db/farebox'
const NO_FILE = path.join(folder, 'none.yaml')
const ISSUER = {
  FAREBOX_PEOPLE_ISSUER_URL: 'https://login.example',
  FAREBOX_PEOPLE_ISSUER_CLIENT_ID: 'farebox',
  FAREBOX_PEOPLE_ISSUER_CLIENT_SECRET: 'canary-8d1e',
  FAREBOX_PEOPLE_ISSUER_NAME: 'Example',
}
let files = 0

function file(text: string): string {
  const name = path.join(folder, `${files++}.yaml`)
  writeFileSync(name, text)
  return name
}

function problems(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadConfig(env)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    assert.ok(!inspect(error, { depth: null, showHidden: true }).includes('canary'), 'no secret in an error')
    return error.problems
  }
  return []
}

describe('configuration', () => {
  it('needs nothing but a database', () => {
    const config = loadConfig({ FAREBOX_DATABASE_URL: URL })
    assert.equal(config.database.url.reveal(), URL)
    assert.deepEqual(config.names, {
      provider: 'Farebox',
      social_a: 'social_a',
      social_b: 'social_b',
      social_c: 'social_c',
      reseller: 'reseller',
      traffic_analytics: 'traffic_analytics',
      deep_research: 'deep-research/search',
      deep_research_upstream: 'search',
    })
    assert.deepEqual(config.listen.gateway, { host: '127.0.0.1', port: 8700 })
    assert.ok(!inspect(config, { depth: null }).includes('canary'))
    const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)
    assert.ok(!JSON.stringify(config, plain).includes('canary'))
  })

  it('shows pages under its own name and in its own colours, or in those that are set: both schemes, and AA in each', () => {
    const of = (env: Record<string, string>) => loadConfig({ FAREBOX_DATABASE_URL: URL, ...env }).site
    assert.deepEqual(of({}), { show: ['proof', 'reference'] })
    const accents = { FAREBOX_SITE_ACCENT_LIGHT: '#0b6b53', FAREBOX_SITE_ACCENT_DARK: '#5fd3b0' }
    const links = {
      FAREBOX_SITE_TERMS_URL: 'https://fox.example/terms',
      FAREBOX_SITE_PRIVACY_URL: 'https://fox.example/privacy',
      FAREBOX_SITE_IMPRINT_URL: 'https://fox.example/imprint',
      FAREBOX_SITE_SUPPORT: 'help@fox.example',
    }
    assert.deepEqual(of({ FAREBOX_SITE_NAME: 'Fox', ...accents, ...links }), {
      name: 'Fox',
      accent_light: '#0b6b53',
      accent_dark: '#5fd3b0',
      terms_url: 'https://fox.example/terms',
      privacy_url: 'https://fox.example/privacy',
      imprint_url: 'https://fox.example/imprint',
      support: 'help@fox.example',
      show: ['proof', 'reference'],
    })
    const told = (env: Record<string, string>) => problems({ FAREBOX_DATABASE_URL: URL, ...env })[0] ?? ''
    assert.match(told({ FAREBOX_SITE_ACCENT_LIGHT: '#0b6b53' }), /^site\.accent_dark .* is missing/)
    assert.match(
      told({ ...accents, FAREBOX_SITE_ACCENT_LIGHT: '#ffcb2e' }),
      /^site\.accent_light .* contrast of 1\.\d\d/,
    )
    assert.match(told({ FAREBOX_SITE_LOGO: path.join(folder, 'none.svg') }), /^site\.logo .* cannot be read/)
  })

  it('has two paths of deep research, here and upstream, which may be the same and have slashes', () => {
    const { names } = loadConfig({
      FAREBOX_DATABASE_URL: URL,
      FAREBOX_NAMES_DEEP_RESEARCH: 'social_a/deep/search',
      FAREBOX_NAMES_DEEP_RESEARCH_UPSTREAM: 'social_a/deep/search',
    })
    assert.equal(names.deep_research, 'social_a/deep/search')
    assert.equal(names.deep_research_upstream, 'social_a/deep/search')
  })

  it('knows every first word that the service itself uses below /v1', () => {
    const own = catalogue.operations.flatMap(({ path }) => /^\/v1\/([a-z]+)/.exec(path)?.[1] ?? [])
    const words = new Set([...own, 'models', 'usage', 'balance', 'requests'])
    assert.deepEqual(RESERVED_MODEL_SEGMENTS.toSorted(), [...words].toSorted())
  })

  it('takes the file, and the environment before it', () => {
    const yaml = file(
      'http:\n  body_bytes: 2048\n  cors_origins: [https://a.example]\nlisten:\n  gateway: "[::1]:9000"\n',
    )
    const config = loadConfig({ FAREBOX_CONFIG: yaml, FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_BODY_BYTES: '4096' })
    assert.equal(config.http.body_bytes, 4096)
    assert.deepEqual(config.http.cors_origins, ['https://a.example'])
    assert.deepEqual(config.listen.gateway, { host: '::1', port: 9000 })
  })

  it('takes bodies of models up to 32 MiB, or as far as the memory has room for them', () => {
    const of = (env: Record<string, string>) => modelBodyBytes(loadConfig({ FAREBOX_DATABASE_URL: URL, ...env }))
    assert.equal(of({}), 33_554_432)
    assert.equal(of({ FAREBOX_MEMORY_BUDGET_BYTES: String(384 * 1_048_576) }), 27_962_026)
    assert.equal(of({ FAREBOX_MEMORY_BUDGET_BYTES: String(179 * 1_048_576) }), 1_092_266)
    assert.equal(of({ FAREBOX_HTTP_MODEL_BODY_BYTES: '2097152' }), 2_097_152)
  })

  it('reads a secret from a file of its own, named in either place', () => {
    const secret = file(`${URL}\n`)
    assert.equal(loadConfig({ FAREBOX_DATABASE_URL_FILE: secret }).database.url.reveal(), URL)
    const yaml = file(`database:\n  url_file: ${secret}\n`)
    assert.equal(loadConfig({ FAREBOX_CONFIG: yaml }).database.url.reveal(), URL)
  })

  it('takes the keys that stored secrets are sealed with, which need not be there', () => {
    assert.deepEqual(loadConfig({ FAREBOX_DATABASE_URL: URL }).secrets, {})
    const key = Buffer.alloc(32, 'canary').toString('base64')
    const { secrets } = loadConfig({
      FAREBOX_DATABASE_URL: URL,
      FAREBOX_SECRETS_MASTER_KEY: key,
      FAREBOX_CONFIG: file(`secrets:\n  previous_master_key_file: ${file(`${key}\n`)}\n`),
    })
    assert.equal(secrets.master_key?.reveal(), key)
    assert.equal(secrets.previous_master_key?.reveal(), key)
  })

  it('lets addresses of strangers be asked where they are public, unless told otherwise', () => {
    assert.deepEqual(loadConfig({ FAREBOX_DATABASE_URL: URL }).outbound, {
      access: 'public',
      allowed_origins: [],
      refused_networks: [],
    })
    const { outbound } = loadConfig({
      FAREBOX_DATABASE_URL: URL,
      FAREBOX_OUTBOUND_ACCESS: 'listed',
      FAREBOX_OUTBOUND_ALLOWED_ORIGINS: 'https://issuer.example, http://10.0.0.7:8080',
      FAREBOX_OUTBOUND_REFUSED_NETWORKS: '2001:db8:64::/96, 8.8.8.8',
    })
    assert.deepEqual(outbound, {
      access: 'listed',
      allowed_origins: ['https://issuer.example', 'http://10.0.0.7:8080'],
      refused_networks: ['2001:db8:64::/96', '8.8.8.8'],
    })
  })

  it('lets everybody sign up with 2 USD, and 5 USD of test money, unless told otherwise', () => {
    const { people, mail } = loadConfig({ FAREBOX_DATABASE_URL: URL })
    const amounts = { credit: usd('2'), test_credit: usd('5'), low_balance: usd('1') }
    assert.deepEqual([people, mail], [{ sign_up: 'open', domains: [], ...amounts }, {}])
    const told = loadConfig({
      FAREBOX_DATABASE_URL: URL,
      FAREBOX_PEOPLE_SIGN_UP: 'closed',
      FAREBOX_PEOPLE_DOMAINS: 'harbour.example, mail.harbour.example',
      FAREBOX_PEOPLE_CREDIT: '0',
      FAREBOX_PEOPLE_TEST_CREDIT: '0',
      FAREBOX_PEOPLE_LOW_BALANCE: '0',
    })
    const domains = ['harbour.example', 'mail.harbour.example']
    assert.deepEqual(told.people, {
      ...{ sign_up: 'closed', domains },
      ...{ credit: usd('0'), test_credit: usd('0'), low_balance: usd('0') },
    })
  })

  it('takes whom mail goes through, which is a secret, and who writes it, with a name or without', () => {
    const url = 'smtps://farebox:canary%40@mail.example'
    const env = { FAREBOX_DATABASE_URL: URL, FAREBOX_MAIL_URL: url }
    const named = loadConfig({ ...env, FAREBOX_MAIL_FROM: 'Farebox, Inc. <no-reply@harbour.example>' })
    assert.equal(named.mail.url?.reveal(), url)
    assert.deepEqual(named.mail.from, { name: 'Farebox, Inc.', address: 'no-reply@harbour.example' })
    const bare = loadConfig({ ...env, FAREBOX_MAIL_FROM: 'no-reply@harbour.example' })
    assert.deepEqual(bare.mail.from, { name: '', address: 'no-reply@harbour.example' })
    assert.ok(!inspect(named, { depth: null }).includes('canary'))
  })

  it('takes an issuer by which people sign in, from the file and a secret beside it', () => {
    const secret = file('canary-8d1e')
    const yaml = file(
      `people:\n  issuer:\n    url: https://login.example/realms/a\n    client_id: farebox\n    client_secret_file: ${secret}\n    name: Example\n`,
    )
    const env = { FAREBOX_DATABASE_URL: URL, FAREBOX_CONFIG: yaml, FAREBOX_HTTP_SITE_URL: 'http://localhost:8702' }
    const { issuer } = loadConfig({ ...env, FAREBOX_PEOPLE_ISSUER_NAME: 'Example Login' }).people
    assert.deepEqual(
      [issuer?.url, issuer?.client_id, issuer?.client_secret.reveal(), issuer?.name],
      ['https://login.example/realms/a', 'farebox', 'canary-8d1e', 'Example Login'],
    )
    assert.equal(loadConfig({ FAREBOX_DATABASE_URL: URL }).people.issuer, undefined)
    assert.deepEqual(problems({ FAREBOX_DATABASE_URL: URL, FAREBOX_PEOPLE_ISSUER_URL: 'https://login.example' }), [
      'people.issuer.client_id (FAREBOX_PEOPLE_ISSUER_CLIENT_ID) is missing: what the issuer calls us',
      'people.issuer.client_secret (FAREBOX_PEOPLE_ISSUER_CLIENT_SECRET) is missing',
      'people.issuer.name (FAREBOX_PEOPLE_ISSUER_NAME) is missing: what people call the issuer',
    ])
  })

  it('takes an https URL with the proxies in front, or with the word that there are none', () => {
    const proxiesOf = (text: string) =>
      loadConfig({
        FAREBOX_DATABASE_URL: URL,
        FAREBOX_HTTP_PUBLIC_URL: 'https://farebox.example',
        FAREBOX_HTTP_TRUSTED_PROXIES: text,
      }).http.trusted_proxies
    assert.deepEqual([proxiesOf('none'), proxiesOf('10.0.0.0/8, 192.0.2.1')], [[], ['10.0.0.0/8', '192.0.2.1']])
  })

  it('says what people cannot have accounts without', () => {
    const all = {
      FAREBOX_MAIL_URL: 'smtp://127.0.0.1:2525',
      FAREBOX_MAIL_FROM: 'a@b.example',
      FAREBOX_HTTP_SITE_URL: 'https://farebox.example',
      FAREBOX_HTTP_TRUSTED_PROXIES: 'none',
      FAREBOX_SECRETS_MASTER_KEY: Buffer.alloc(32, 'canary').toString('base64'),
    }
    const missing = (env: Readonly<Record<string, string>>) =>
      missingForPeople(loadConfig({ FAREBOX_DATABASE_URL: URL, ...env }))
    assert.deepEqual(missing({}), ['mail.url', 'http.site_url', 'secrets.master_key'])
    assert.deepEqual(missing(all), [])
  })

  it('takes an empty section of the file as absent', () => {
    const yaml = file('http:\ndatabase:\nlisten:\n  # gateway: 0.0.0.0:80\nlog:\n  level: warn\n')
    const config = loadConfig({ FAREBOX_CONFIG: yaml, FAREBOX_DATABASE_URL: URL })
    assert.deepEqual([config.http.body_bytes, config.listen.gateway.port, config.log.level], [1_048_576, 8700, 'warn'])
  })

  it('takes every form of the address of a PostgreSQL', () => {
    for (const url of [
      'postgres://db',
      'postgresql://u:p@[::1]:5432/d?sslmode=require',
      'postgres://u:100%@db/d',
      'postgres:///d?host=/var/run/postgresql',
    ])
      assert.equal(loadConfig({ FAREBOX_DATABASE_URL: url }).database.url.reveal(), url)
  })

  it('leaves the variables alone that Kubernetes makes for a service called farebox', () => {
    const links = {
      FAREBOX_PORT: 'tcp://10.0.0.1:8700',
      FAREBOX_PORT_8700_TCP: 'tcp://10.0.0.1:8700',
      FAREBOX_PORT_8700_TCP_PROTO: 'tcp',
      FAREBOX_PORT_8700_TCP_PORT: '8700',
      FAREBOX_PORT_8700_TCP_ADDR: '10.0.0.1',
      FAREBOX_PORT_53_UDP: 'udp://10.0.0.1:53',
      FAREBOX_SERVICE_HOST: '10.0.0.1',
      FAREBOX_SERVICE_PORT: '8700',
      FAREBOX_SERVICE_PORT_HTTP: '8700',
    }
    assert.deepEqual(problems({ FAREBOX_DATABASE_URL: URL, ...links }), [])
    const others = { FAREBOX_PORTS: '1', FAREBOX_PORT_HTTP: '1', FAREBOX_SERVICE: '1', FAREBOX_HOST: '1' }
    assert.equal(problems({ FAREBOX_DATABASE_URL: URL, ...others }).length, 4)
  })

  it('leaves the variables alone that programs of callers read, such as those in examples/', () => {
    const callers = { FAREBOX_URL: 'http://127.0.0.1:8700', FAREBOX_KEY: 'fb_test_1' }
    assert.deepEqual(problems({ FAREBOX_DATABASE_URL: URL, ...callers }), [])
    assert.equal(problems({ FAREBOX_DATABASE_URL: URL, FAREBOX_URLS: '1', FAREBOX_KEYS: '1' }).length, 2)
  })

  it('tells all problems at once, a line each', () => {
    const env = { FAREBOX_LOG_LEVEL: 'loud', FAREBOX_HTTP_JSON_DEPTH: '-1', FAREBOX_NAMES_PROVIDER: 'two words' }
    assert.equal(problems(env).length, 4)
    assert.ok(problems(env).every((line) => !line.includes('\n')))
  })

  const refused: Readonly<Record<string, readonly [env: Readonly<Record<string, string>>, expected: RegExp]>> = {
    'a missing secret': [{}, /^database\.url \(FAREBOX_DATABASE_URL\) is missing: set it/],
    'an empty secret': [{ FAREBOX_DATABASE_URL: '' }, /is empty: give it a value/],
    'a secret of white space': [{ FAREBOX_DATABASE_URL: ' \n' }, /is empty/],
    'an empty secret file': [{ FAREBOX_DATABASE_URL_FILE: file('') }, /is empty/],
    'a secret file that is not there': [{ FAREBOX_DATABASE_URL_FILE: NO_FILE }, /can't be read/],
    'a secret given twice': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_DATABASE_URL_FILE: file(URL) },
      /both directly and by file: keep one/,
    ],
    'a database that is no URL': [
      { FAREBOX_DATABASE_URL: 'canary-hunter2' },
      /is not the address of a PostgreSQL .*: set it to/,
    ],
    'a database of another kind': [
      { FAREBOX_DATABASE_URL: 'mysql://u:canary@db/d' },
      /is not the address of a PostgreSQL/,
    ],
    'a database without a host': [{ FAREBOX_DATABASE_URL: 'postgres:///canary' }, /is not the address of a PostgreSQL/],
    'a database whose password has a bare slash': [
      { FAREBOX_DATABASE_URL: 'postgres://u:can/ary@db/d' },
      /percent-encode special characters in the password/,
    ],
    'a secret in the file itself': [{ FAREBOX_CONFIG: file(`database:\n  url: ${URL}\n`) }, /in the clear/],
    'a master key that is none': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_SECRETS_MASTER_KEY: 'canary' },
      /^secrets\.master_key \(FAREBOX_SECRETS_MASTER_KEY\) must be 32 bytes .* openssl rand -base64 32$/,
    ],
    'a master key in the file itself': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_CONFIG: file('secrets:\n  master_key: canary\n') },
      /^secrets\.master_key stands in .* in the clear/,
    ],
    'a previous master key without a current one': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_SECRETS_PREVIOUS_MASTER_KEY: Buffer.alloc(32).toString('base64') },
      /is given without secrets\.master_key/,
    ],
    'an unknown variable': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_BODY_BYTE: '1' },
      /did you mean FAREBOX_HTTP_BODY_BYTES\?/,
    ],
    'an unknown key of the file': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_CONFIG: file('htp:\n  body_bytes: 1\n') },
      /htp\.body_bytes in .* is not a setting \(did you mean http\.body_bytes\?\)/,
    ],
    'a file that is not there': [{ FAREBOX_DATABASE_URL: URL, FAREBOX_CONFIG: NO_FILE }, /does not exist/],
    'a file that is not YAML': [{ FAREBOX_DATABASE_URL: URL, FAREBOX_CONFIG: file('a: [') }, /not valid YAML/],
    'a number with an exponent': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_BODY_BYTES: '1e6' },
      /must be a whole number/,
    ],
    'a number that is too large': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_BODY_BYTES: '99999999999' },
      /from 1024 to/,
    ],
    'a budget of memory that is too small for the largest call': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_MEMORY_BUDGET_BYTES: '104857600' },
      /must be at least 179 MiB/,
    ],
    'bodies of models for which the memory has no room': [
      {
        FAREBOX_DATABASE_URL: URL,
        FAREBOX_HTTP_MODEL_BODY_BYTES: '33554432',
        FAREBOX_MEMORY_BUDGET_BYTES: '402653184',
      },
      /must be at least 427 MiB for bodies of http\.model_body_bytes/,
    ],
    'an address without a port': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_LISTEN_GATEWAY: 'localhost' },
      /must be host:port/,
    ],
    'a role that does not exist': [{ FAREBOX_DATABASE_URL: URL, FAREBOX_ROLES: 'gateway,cook' }, /must be among/],
    'no role': [{ FAREBOX_DATABASE_URL: URL, FAREBOX_ROLES: '' }, /names no role/],
    'two listeners on one address': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_LISTEN_ADMIN: '127.0.0.1:8700' },
      /listener of its own/,
    ],
    'a path segment with a slash': [{ FAREBOX_DATABASE_URL: URL, FAREBOX_NAMES_SOCIAL_A: 'a/b' }, /as in a path/],
    'two equal path segments': [{ FAREBOX_DATABASE_URL: URL, FAREBOX_NAMES_SOCIAL_A: 'social_b' }, /would collide/],
    'a path segment of the service itself': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_NAMES_RESELLER: 'financial' },
      /choose another/,
    ],
    'a path of deep research that begins as one of the service itself': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_NAMES_DEEP_RESEARCH: 'models/search' },
      /names\.deep_research .* begins with "models".* choose another/,
    ],
    'a path of deep research with a slash before it': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_NAMES_DEEP_RESEARCH: '/search' },
      /must be a path without its slash/,
    ],
    'a path of deep research that leads elsewhere': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_NAMES_DEEP_RESEARCH_UPSTREAM: 'a/../b' },
      /must be a path without its slash/,
    ],
    ...Object.fromEntries(
      ['*', 'https://a.example/', 'https://A.example', 'a.example', 'ftp://a.example', 'https://u@a.example'].map(
        (text) => [
          `an allowed origin that is none: ${text}`,
          [
            { FAREBOX_DATABASE_URL: URL, FAREBOX_OUTBOUND_ALLOWED_ORIGINS: text },
            /^outbound\.allowed_origins .* must be an origin/,
          ],
        ],
      ),
    ),
    'access to the outside that is none': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_OUTBOUND_ACCESS: 'all' },
      /must be public, listed or none/,
    ],
    ...Object.fromEntries(
      [
        ...['canary', 'http://canary@mail.example', 'smtp://', 'smtp://mail.example/canary'],
        ...[
          'smtp://mail.example?tls.rejectUnauthorized=canary',
          'smtp://u:canary%zz@mail.example',
          'smtp://canary@mail.example',
        ],
      ].map((url) => [
        `an address of mail that is none: ${url}`,
        [
          { FAREBOX_DATABASE_URL: URL, FAREBOX_MAIL_URL: url, FAREBOX_MAIL_FROM: 'a@b.example' },
          /^mail\.url \(FAREBOX_MAIL_URL\) must be smtp:/,
        ],
      ]),
    ),
    'an address of mail in the file itself': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_CONFIG: file('mail:\n  url: smtp://u:canary@mail.example\n') },
      /^mail\.url stands in .* in the clear/,
    ],
    'mail that nobody writes': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_MAIL_URL: 'smtp://mail.example' },
      /^mail\.from \(FAREBOX_MAIL_FROM\) is missing/,
    ],
    ...Object.fromEntries(
      ['nobody', 'a@b.example, c@d.example', 'A <a@b.example>, B <c@d.example>', 'A\r\nBcc: c@d <a@b.example>'].map(
        (from) => [
          `a sender that is none: ${JSON.stringify(from)}`,
          [{ FAREBOX_DATABASE_URL: URL, FAREBOX_MAIL_FROM: from }, /^mail\.from .* must be an address/],
        ],
      ),
    ),
    'sign-up that is neither open nor closed': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_PEOPLE_SIGN_UP: 'ajar' },
      /must be open or closed/,
    ],
    'a domain that is none': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_PEOPLE_DOMAINS: '@harbour.example' },
      /must be domains in lower case/,
    ],
    'credit below nothing': [{ FAREBOX_DATABASE_URL: URL, FAREBOX_PEOPLE_CREDIT: '-1' }, /must be an amount of USD/],
    'an issuer without https': [
      {
        FAREBOX_DATABASE_URL: URL,
        FAREBOX_HTTP_SITE_URL: 'https://farebox.example',
        FAREBOX_HTTP_TRUSTED_PROXIES: 'none',
        ...ISSUER,
        FAREBOX_PEOPLE_ISSUER_URL: 'http://login.example',
      },
      /^people\.issuer\.url .* must be a URL with https/,
    ],
    'an issuer where nobody knows where people come back to': [
      { FAREBOX_DATABASE_URL: URL, ...ISSUER },
      /^people\.issuer\.url .* is given without http\.site_url/,
    ],
    'a part of an issuer that there is not': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_CONFIG: file('people:\n  issuer:\n    uri: https://login.example\n') },
      /^people\.issuer\.uri in .* is not a setting \(did you mean people\.issuer\.url\?\)/,
    ],
    'every origin and one more': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_CORS_ORIGINS: '*,https://a.example' },
      /names \* and others/,
    ],
    'an origin with a path': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_CORS_ORIGINS: 'https://a.example/x' },
      /must be an origin/,
    ],
    'a network that is none': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_TRUSTED_PROXIES: '10.0.0.0/33' },
      /must be an address or a network/,
    ],
    ...Object.fromEntries(
      ['PUBLIC_URL', 'SITE_URL', 'MCP_URL'].map((name) => [
        `an https URL without a word about proxies: ${name}`,
        [
          { FAREBOX_DATABASE_URL: URL, [`FAREBOX_HTTP_${name}`]: 'https://farebox.example' },
          /http\.trusted_proxies .*is missing: an https URL means a proxy in front/,
        ],
      ]),
    ),
    'none and other proxies': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_TRUSTED_PROXIES: 'none,10.0.0.0/8' },
      /none stands alone/,
    ],
    'headers that may take longer than their request': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_HEADERS_TIMEOUT_MS: '50000', FAREBOX_HTTP_REQUEST_TIMEOUT_MS: '40000' },
      /is longer than http\.request_timeout_ms, .*: lower it, or raise http\.request_timeout_ms/,
    ],
    'a pause of the drain that is longer than all of it': [
      { FAREBOX_DATABASE_URL: URL, FAREBOX_HTTP_DRAIN_PAUSE_MS: '5000', FAREBOX_HTTP_DRAIN_MS: '4000' },
      /is longer than http\.drain_ms, .*: lower it, or raise http\.drain_ms/,
    ],
  }
  for (const [what, [env, expected]] of Object.entries(refused)) {
    it(`refuses ${what} in one line that says what to change`, () => {
      const [line = '', ...more] = problems(env)
      assert.match(line, expected)
      assert.equal(more.filter((other) => !other.includes('database.url')).length, 0, more.join('\n'))
    })
  }
})

describe('ceilings on loss', () => {
  const loss = (env: Readonly<Record<string, string>>) => loadConfig({ FAREBOX_DATABASE_URL: URL, ...env }).loss

  it('are there by default, are amounts of USD, and can be left out', () => {
    assert.deepEqual(loss({}), {
      account_hour_usd: 5_000_000_000n,
      account_day_usd: 20_000_000_000n,
      route_hour_usd: 50_000_000_000n,
      route_day_usd: 200_000_000_000n,
    })
    assert.equal(loss({ FAREBOX_LOSS_ACCOUNT_HOUR_USD: '0.25' }).account_hour_usd, 250_000_000n)
    assert.equal(loss({ FAREBOX_LOSS_ROUTE_DAY_USD: 'none' }).route_day_usd, null)
    const config = loadConfig({
      FAREBOX_DATABASE_URL: URL,
      FAREBOX_CONFIG: file('loss:\n  account_day_usd: 1.5\n'),
    })
    assert.equal(config.loss.account_day_usd, 1_500_000_000n)
  })

  it('are refused where they are no amounts, or where one account could reach that of a route', () => {
    for (const wrong of ['0', '-1', 'many', '', '1e3'])
      assert.match(
        problems({ FAREBOX_DATABASE_URL: URL, FAREBOX_LOSS_ACCOUNT_HOUR_USD: wrong })[0] ?? '',
        /^loss\.account_hour_usd \(FAREBOX_LOSS_ACCOUNT_HOUR_USD\) must be an amount of USD above 0/,
      )
    assert.deepEqual(problems({ FAREBOX_DATABASE_URL: URL, FAREBOX_LOSS_ROUTE_DAY_USD: '59.99' }), [
      'loss.route_day_usd (FAREBOX_LOSS_ROUTE_DAY_USD) is less than three times loss.account_day_usd: raise it',
    ])
  })
})
