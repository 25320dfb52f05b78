import { document, rectangle, text } from './svg.ts'

/** As node writes it: a tree of frames, and which of them was running at each sample. */
export type CpuProfile = {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
    readonly children?: readonly number[]
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
  readonly startTime: number
}

type Frame = { readonly name: string; readonly owner: Owner; us: number; readonly below: Map<string, Frame> }
type Owner = keyof typeof OWNERS

/** Whose code it is. */
const OWNERS = {
  ours: { colour: '#fb923c', label: 'ours' },
  node: { colour: '#93c5fd', label: 'node:*' },
  undici: { colour: '#86efac', label: 'undici' },
  pg: { colour: '#d8b4fe', label: 'pg' },
  fastify: { colour: '#fde047', label: 'fastify' },
  others: { colour: '#e2e8f0', label: 'other packages' },
  machine: { colour: '#fca5a5', label: 'system calls, collector, regular expressions' },
} as const

const WIDTH = 1_200
const ROW = 17
const TOP = 66
const LEAST_SHARE = 0.002
const DEPTH = 34

/** Draws where the time went between two moments of the monotonic clock, widest first, callers above what they called. */
export function flameGraph(title: string, profile: CpuProfile, fromUs: number, toUs: number): string {
  const root = gather(profile, fromUs, toUs)
  const parts: string[] = []
  let rows = 0
  const draw = (frame: Frame, x: number, depth: number): void => {
    const width = (frame.us / root.us) * WIDTH
    if (frame.us / root.us < LEAST_SHARE || depth > DEPTH) return
    rows = Math.max(rows, depth + 1)
    const share = `${((100 * frame.us) / root.us).toFixed(1)} %`
    const y = TOP + depth * ROW
    parts.push(rectangle(x, y, width, ROW - 1, OWNERS[frame.owner].colour, `${frame.name}: ${share}`))
    const room = Math.floor(width / 6.2)
    if (room > 3) parts.push(text(x + 3, y + 12, `${frame.name} ${share}`.slice(0, room), { size: 11 }))
    let next = x
    for (const child of [...frame.below.values()].sort((a, b) => b.us - a.us)) {
      draw(child, next, depth + 1)
      next += (child.us / root.us) * WIDTH
    }
  }
  draw(root, 0, 0)
  const key = Object.values(OWNERS).flatMap(({ colour, label }, at) => [
    rectangle(12 + at * 130, 38, 12, 12, colour),
    text(29 + at * 130, 48, label, { size: 11 }),
  ])
  const heading = text(12, 24, title, { size: 15, weight: 600 })
  return document(WIDTH, TOP + rows * ROW + 8, title, [heading, ...key, ...parts])
}

/** Whose code was running itself, in percent of the time that anything was. */
export function sharesOf(profile: CpuProfile, fromUs: number, toUs: number): string[] {
  const own = new Map<Owner, number>()
  const add = (frame: Frame): void => {
    const below = [...frame.below.values()]
    const rest = frame.us - below.reduce((sum, { us }) => sum + us, 0)
    own.set(frame.owner, (own.get(frame.owner) ?? 0) + rest)
    for (const one of below) add(one)
  }
  const root = gather(profile, fromUs, toUs)
  add(root)
  return [...own]
    .sort(([, a], [, b]) => b - a)
    .map(([owner, us]) => `${OWNERS[owner].label} ${((100 * us) / root.us).toFixed(0)} %`)
}

function gather({ nodes, samples, timeDeltas, startTime }: CpuProfile, fromUs: number, toUs: number): Frame {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const pathOf = (id: number): readonly number[] => {
    const parent = parents.get(id)
    return parent === undefined ? [] : [...pathOf(parent), id]
  }
  const paths = new Map(nodes.map(({ id }) => [id, pathOf(id)]))
  const root: Frame = { name: 'all of it', owner: 'machine', us: 0, below: new Map() }
  let atUs = startTime
  for (const [place, id] of samples.entries()) {
    const us = timeDeltas[place] ?? 0
    atUs += us
    if (atUs < fromUs || atUs > toUs || byId.get(id)?.callFrame.functionName === '(idle)') continue
    root.us += us
    let frame = root
    for (const one of paths.get(id) ?? []) {
      const known = byId.get(one)?.callFrame
      if (known === undefined) continue
      frame = childOf(frame, known)
      frame.us += us
    }
  }
  return root
}

function childOf(frame: Frame, { functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): Frame {
  const place = url.replace(/^.*\/(node_modules|server\/src)\//, '')
  const name = `${functionName || 'anonymous'}${place === '' ? '' : ` ${place}:${lineNumber + 1}`}`
  const known = frame.below.get(name)
  if (known !== undefined) return known
  const made: Frame = { name, owner: ownerOf(url), us: 0, below: new Map() }
  frame.below.set(name, made)
  return made
}

function ownerOf(url: string): Owner {
  if (url === '') return 'machine'
  if (url.includes('/server/src/')) return 'ours'
  if (url.startsWith('node:')) return 'node'
  if (url.includes('/undici/') || url.startsWith('wasm:')) return 'undici'
  if (/\/node_modules\/pg/.test(url)) return 'pg'
  return /\/node_modules\/(fastify|find-my-way|@fastify)/.test(url) ? 'fastify' : 'others'
}
