import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'

const metric = z.object({
  name: z.string(),
  value: z.number(),
  unit: z.string(),
  goal: z.string().nullable(),
  ok: z.boolean(),
})
const file = z.object({
  proof: z.string(),
  recorded_at: z.iso.datetime().transform((text) => new Date(text)),
  seed: z.number().optional(),
  shown: z.record(z.string(), z.unknown()).default({}),
  metrics: z.array(metric).default([]),
})
const status = z.record(z.string(), z.enum(['current', 'stale', 'unknown']))

export type Metric = z.output<typeof metric>
export type Proof = {
  readonly name: string
  readonly recordedAt: Date
  readonly seed: number | null
  /** What was shown, a sentence each, with its figures. */
  readonly shown: readonly Shown[]
  readonly metrics: readonly Metric[]
  /** Whether its sources have changed since it was recorded, as far as whoever built the program could know. */
  readonly isStale: boolean | null
}

export type Shown = { readonly sentence: string; readonly figures: readonly Figure[] }
export type Figure = { readonly name: string; readonly value: number | string }

/** What the build says of which proofs are stale, beside the documents. */
export const STATUS_FILE = 'proof-status.json'

/** Every proof of docs/proof, in the order of their names. */
export function readProofs(docs: string): readonly Proof[] {
  const folder = path.join(docs, 'proof')
  const states = readStatus(path.join(docs, STATUS_FILE))
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => {
      const { proof, recorded_at, seed, shown, metrics } = file.parse(
        JSON.parse(readFileSync(path.join(folder, name), 'utf8')),
      )
      const state = states?.[proof]
      return {
        name: proof,
        recordedAt: recorded_at,
        seed: seed ?? null,
        shown: Object.entries(shown).map(([sentence, value]) => ({ sentence, figures: figuresIn(value) })),
        metrics,
        isStale: state === undefined || state === 'unknown' ? null : state === 'stale',
      }
    })
}

function readStatus(place: string) {
  return existsSync(place) ? status.parse(JSON.parse(readFileSync(place, 'utf8'))) : undefined
}

const MOST_FIGURES = 6

/** Those that stand for themselves; what is nested is in the file. */
function figuresIn(value: unknown): readonly Figure[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value)
    .flatMap(([name, one]) =>
      typeof one === 'number' || typeof one === 'string' ? [{ name: name.replaceAll('_', ' '), value: one }] : [],
    )
    .slice(0, MOST_FIGURES)
}
