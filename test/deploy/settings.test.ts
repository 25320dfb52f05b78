import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { ROOT } from '../../harness/root.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { type Config, loadConfig } from '../../server/src/config.ts'

/** What deploy/ and compose.yaml set is read by the program as it stands there, with secrets in files of this test. */

const scratch = mkdtempSync(path.join(tmpdir(), 'deploy-settings-'))
after(() => rmSync(scratch, { recursive: true, force: true }))
const secret = (name: string, text: string) => {
  writeFileSync(path.join(scratch, name), text)
  return path.join(scratch, name)
}
const SECRETS = {
  FAREBOX_DATABASE_URL_FILE: secret('database-url', 'postgres://farebox:secret@127.0.0.1:5432/farebox'),
  FAREBOX_SECRETS_MASTER_KEY_FILE: secret('master-key', makeMasterKey().reveal()),
}
const read = (...at: string[]) => readFileSync(path.join(ROOT, ...at), 'utf8')
type Environment = Readonly<Record<string, string>>

/** Refuses a setting that there is not. Each file of a secret stands for one of ours; each settings file is the one of the repository. */
function configOf(environment: Environment, settings: string | undefined): Config {
  for (const name of Object.keys(SECRETS)) assert.ok(name in environment, `${name} is not set`)
  const file = settings === undefined ? {} : { FAREBOX_CONFIG: path.join(ROOT, settings) }
  const { FAREBOX_CONFIG: _, ...rest } = environment
  return loadConfig({ ...rest, ...SECRETS, ...file })
}

const ALL_ROLES = ['agent', 'gateway', 'site', 'worker']
/** Each process shows its metrics and its health to operators, and together they have every role. */
function requireAllRoles(configs: readonly Config[]): void {
  for (const { roles } of configs) assert.ok(roles.includes('admin'), roles.join())
  const roles = new Set(configs.flatMap((one) => one.roles.filter((role) => role !== 'admin')))
  assert.deepEqual([...roles].toSorted(), ALL_ROLES)
}

const Compose = z.object({
  services: z.record(
    z.string(),
    z.object({ environment: z.record(z.string(), z.string()).optional(), image: z.string() }),
  ),
})

describe('compose.yaml', () => {
  const { services } = Compose.parse(parse(read('compose.yaml'), { merge: true }))
  const processes = Object.entries(services).filter(([, { environment }]) => environment?.FAREBOX_ROLES !== undefined)

  it('starts processes that understand their settings, of every role, behind the proxy that they trust', () => {
    const configs = processes.map(([, { environment }]) => configOf(environment ?? {}, 'deploy/compose/farebox.yaml'))
    requireAllRoles(configs)
    assert.match(read('compose.yaml'), new RegExp(`subnet: ${configs[0]?.http.trusted_proxies}`))
  })

  it('has a server in the proxy for each process that takes calls, at the port of the image', () => {
    const proxy = read('deploy/compose/haproxy.cfg')
    const image = read('Dockerfile')
    const servers = [...proxy.matchAll(/^ {2}server (\S+) (\S+):(\d+)$/gm)].map(([, , host, port]) => ({ host, port }))
    for (const { host, port } of servers) {
      const role = services[host ?? '']?.environment?.FAREBOX_ROLES?.split(',')[0]?.toUpperCase()
      assert.match(image, new RegExp(`FAREBOX_LISTEN_${role}=0\\.0\\.0\\.0:${port}\\b`), host)
    }
    assert.deepEqual(
      servers.map(({ host }) => host).toSorted(),
      processes
        .map(([name]) => name)
        .filter((name) => name !== 'worker')
        .toSorted(),
    )
  })
})

describe('the units of systemd', () => {
  const folder = path.join(ROOT, 'deploy/systemd')

  it('start processes that understand their settings, of every role, each on addresses of its own', () => {
    const unit = read('deploy/systemd/farebox@.service')
    const shared = [...unit.matchAll(/^Environment=(FAREBOX_\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [
      name,
      value,
    ])
    const configs = readdirSync(folder)
      .filter((file) => file.endsWith('.env'))
      .map((file) => {
        const own = [...read('deploy/systemd', file).matchAll(/^(FAREBOX_\w+)=(.*)$/gm)]
        return configOf(
          Object.fromEntries([...shared, ...own.map(([, name = '', value = '']) => [name, value])]),
          undefined,
        )
      })
    requireAllRoles(configs)
    const addresses = configs.flatMap(({ roles, listen }) =>
      roles.flatMap((role) => (role === 'worker' ? [] : [`${listen[role].host}:${listen[role].port}`])),
    )
    assert.equal(new Set(addresses).size, addresses.length, addresses.join())
  })

  it('leave a process the time that it drains for', () => {
    const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(read('deploy/systemd/farebox@.service'))?.[1])
    assert.ok(seconds * 1_000 > loadConfig({ ...SECRETS }).http.drain_ms)
  })
})

const Workload = z.object({
  kind: z.string(),
  spec: z.object({
    template: z.object({
      spec: z.object({
        terminationGracePeriodSeconds: z.number().optional(),
        enableServiceLinks: z.literal(false),
        containers: z.array(z.object({ env: z.array(z.object({ name: z.string(), value: z.string() })) })),
      }),
    }),
  }),
})

describe('the manifests of Kubernetes', () => {
  const base = path.join(ROOT, 'deploy/kubernetes/base')
  const workloads = readdirSync(base)
    .flatMap((file) => (file.endsWith('.yaml') ? parseAllDocuments(readFileSync(path.join(base, file), 'utf8')) : []))
    .map((document) => document.toJS())
    .filter((object) => object.kind === 'Deployment' || object.kind === 'Job')
    .map((object) => Workload.parse(object))

  it('start processes that understand their settings, of every role, and leave them the time that they drain for', () => {
    const configs = workloads.flatMap(({ kind, spec: { template } }) =>
      template.spec.containers.map(({ env }) => {
        const environment = Object.fromEntries(env.map(({ name, value }) => [name, value]))
        const config = configOf(environment, 'deploy/kubernetes/base/farebox.yaml')
        const seconds = template.spec.terminationGracePeriodSeconds
        if (kind === 'Deployment') assert.ok(Number(seconds) * 1_000 > config.http.drain_ms)
        return { kind, config }
      }),
    )
    requireAllRoles(configs.filter(({ kind }) => kind === 'Deployment').map(({ config }) => config))
  })
})
