import type pg from 'pg'
import { freePort } from '../../../harness/free-port.ts'
import type { Gateway } from '../../../harness/gateways.ts'
import { type SandboxProcess, startSandbox } from '../../../harness/sandbox.ts'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { type Customer, type Installation, ids, makeKey } from '../installation.ts'
import { type ConversationUpstream, socketsOf, UPSTREAMS } from './streams.ts'

/** An upstream that dies and comes back at the same address, with all that it was asked in all of its lives. */
export async function startFailing() {
  const port = await freePort()
  const start = () => startSandbox({ port })
  const before: JournalEntry[] = []
  let process: SandboxProcess = await start()

  return {
    url: process.url,
    journal: async () => [...before, ...(await process.journal())],
    /** What it was asked since it started last, from so many requests on. */
    thisLife: (since = 0) => process.journal(since),
    pause: () => process.pause(),
    resume: () => process.resume(),
    stop: () => process.stop(),
    fault: (...fault: Parameters<SandboxProcess['fault']>) => process.fault(...fault),
    async forgetFaults() {
      await (await fetch(`${process.url}/control`, { method: 'DELETE' })).text()
    },
    async kill() {
      before.push(...(await process.journal()))
      await process.kill()
    },
    async start() {
      process = await start()
    },
    /** Until no process of ours has a connection to it that it takes for a good one. */
    async noConnections(gateways: readonly Gateway[]) {
      const isFree = () => gateways.every(({ pid }) => socketsOf(pid, port) === 0)
      await until(isFree, PATIENCE_MS, 'the end of its connections')
    },
  }
}

export type Failing = Awaited<ReturnType<typeof startFailing>>

export type Slots = Readonly<Record<ConversationUpstream, { readonly failing: Slot; readonly well: Slot }>>
type Slot = { readonly slot: string; readonly upstreamId: Id }

/** A slot of each protocol at each of the two. */
export async function makeSlots({ pool, masterKey, sandbox }: Installation, failing: Failing): Promise<Slots> {
  const parts = { pool, ids, seal: createSeal({ current: masterKey }) }
  async function makeSlot(name: string, baseUrl: string): Promise<Slot> {
    const slot = `${name}-${ids.next()}`
    const credential = new Secret('sandbox-key')
    return {
      slot,
      upstreamId: await saveUpstream(parts, { slot, mode: 'test', baseUrl, kind: 'native', credential }),
    }
  }
  const both = async (protocol: ConversationUpstream) => ({
    failing: await makeSlot('failing', `${failing.url}/${protocol}`),
    well: await makeSlot('well', `${sandbox.url}/${protocol}`),
  })
  return { openai: await both('openai'), anthropic: await both('anthropic'), gemini: await both('gemini') }
}

/** A model that both serve, each asked first as often as the other; at the failing one it may be a model that fails. */
export async function makeModel(pool: pg.Pool, slots: Slots, atFailing: string, atWell: string): Promise<string> {
  const model = `maker/${ids.next()}`
  await saveModel({ pool }, { id: model, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model, ...SANDBOX_PRICE })
  for (const name of UPSTREAMS) {
    const { failing, well } = slots[name]
    for (const protocol of SPOKEN_AT[name]) {
      await saveRoute({ pool, ids }, { model, slot: failing.slot, protocol, upstreamModel: atFailing, weight: 1 })
      await saveRoute({ pool, ids }, { model, slot: well.slot, protocol, upstreamModel: atWell, weight: 1 })
    }
  }
  return model
}

/** What an upstream speaks. */
const SPOKEN_AT = {
  openai: ['openai', 'openai_responses', 'openai_embeddings', 'openai_images'],
  anthropic: ['anthropic'],
  gemini: ['gemini', 'gemini_embeddings'],
} as const

/** Some endpoints take so many requests in a minute of each key, whatever the tier allows. */
const SCARCE_CALLS = 30

/** The keys of a customer: for scarce endpoints as many as it takes to meet no limit. */
export function makeKeyring(pool: pg.Pool, { workspaceId, keyId, secret }: Customer) {
  const more: Promise<Pick<Customer, 'keyId' | 'secret'>>[] = []
  let calls = 0
  return {
    async secretFor({ isScarce = false }: { readonly isScarce?: boolean }): Promise<string> {
      if (!isScarce) return secret
      const place = Math.floor(calls / SCARCE_CALLS)
      calls += 1
      more[place] ??= makeKey(pool, workspaceId)
      return (await more[place]).secret
    },
    /** All keys there have been, by their ids: a call is told of to its own alone. */
    secrets: async (): Promise<ReadonlyMap<string, string>> =>
      new Map([{ keyId, secret }, ...(await Promise.all(more))].map((key) => [key.keyId, key.secret])),
  }
}

/** 0 where a process asks an upstream, 1 while it tries, 2 where it does not; undefined where it never has. */
export async function breakerOf({ adminUrl }: Gateway, upstreamId: Id): Promise<number | undefined> {
  const exposed = await (await fetch(`${adminUrl}/metrics`)).text()
  const level = new RegExp(`^farebox_upstream_breaker\\{[^}]*\\bid="${upstreamId}"[^}]*\\} (\\d)$`, 'm').exec(
    exposed,
  )?.[1]
  return level === undefined ? undefined : Number(level)
}
