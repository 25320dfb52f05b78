import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { request } from 'undici'
import { type Child, startChild } from '../../harness/child.ts'
import { installFromDebian } from '../../harness/debian.ts'
import { freePort } from '../../harness/free-port.ts'
import { until } from '../../harness/until.ts'

/** The load balancer in front of the gateways: no retries, no redispatch, and only those that say that they are ready. */
export type Haproxy = Pick<Child, 'pid' | 'output' | 'stop' | 'hasExited'> & { readonly port: number }

const PLACES = ['/usr/sbin', '/usr/local/sbin', ...(process.env.PATH ?? '').split(path.delimiter)]
const START_DEADLINE_MS = 60_000

/** `patienceSeconds`: how long a gateway may take to be connected to, and to say that it is ready. */
export async function startHaproxy(
  folder: string,
  gatewayPorts: readonly number[],
  patienceSeconds: number,
): Promise<Haproxy> {
  const program = find() ?? install()
  if (program === undefined)
    throw new Error('HAProxy is missing and could not be installed. Install it (Debian: apt-get install haproxy).')
  const port = await freePort()
  const file = path.join(folder, 'haproxy.cfg')
  writeFileSync(file, configuration(port, gatewayPorts, patienceSeconds))
  const child = startChild(program, ['-db', '-f', file])
  const isUp = async () => {
    if (child.hasExited()) throw new Error(`HAProxy did not start:\n${child.output()}`)
    // Leaves no connection behind, which would look like a caller's.
    const answer = await request(`http://127.0.0.1:${port}/readyz`, { reset: true }).catch(() => undefined)
    await answer?.body.dump()
    return answer?.statusCode === 200
  }
  await until(isUp, START_DEADLINE_MS, 'that HAProxy serves')
  return { ...child, port }
}

function configuration(port: number, gatewayPorts: readonly number[], patienceSeconds: number): string {
  return `global
  nbthread 1
  maxconn 4000

defaults
  mode http
  retries 0
  no option redispatch
  timeout connect ${2 * patienceSeconds}s
  timeout client 60s
  timeout server 60s
  timeout check ${patienceSeconds}s

frontend callers
  bind 127.0.0.1:${port}
  default_backend gateways

backend gateways
  balance roundrobin
  http-response set-header x-served-by %s
  option httpchk GET /readyz
  default-server check inter 100ms fall 1 rise 1
${gatewayPorts.map((one, at) => `  server gateway-${at} 127.0.0.1:${one}`).join('\n')}
`
}

function find(): string | undefined {
  return PLACES.map((folder) => path.join(folder, 'haproxy')).find((program) => existsSync(program))
}

function install(): string | undefined {
  return installFromDebian('haproxy', (add) => add('haproxy')) ? find() : undefined
}
