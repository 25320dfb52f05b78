import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Stryker } from '@stryker-mutator/core'
import { z } from 'zod'
import { ROOT } from './root.ts'

/** A source, and the unit tests that are to notice any change of what it does. */
export type Target = { readonly source: string; readonly tests: readonly string[] }

export type Survivor = {
  readonly place: string
  /** The line that is changed, by which it is known again when lines above it have changed. */
  readonly line: string
  readonly was: string
  readonly becomes: string
}

export type Tried = {
  readonly mutants: number
  readonly killed: number
  /** Of those killed: ones that no test came to an end with. */
  readonly timedOut: number
  readonly survivors: readonly Survivor[]
}

/** Far more than the tests of one file take, on a machine that is busy. */
const TIMEOUT_MS = 10_000

/** Changes a source in every way that Stryker knows, one at a time, and runs its tests on each. */
export async function tryMutants({ source, tests }: Target): Promise<Tried> {
  const results = await new Stryker({
    mutate: [source],
    plugins: [path.join(ROOT, 'harness/mutant-runner.ts')],
    testRunner: 'farebox',
    farebox: { source, tests },
    coverageAnalysis: 'off',
    concurrency: 1,
    timeoutMS: TIMEOUT_MS,
    disableTypeChecks: false,
    reporters: [],
    logLevel: 'error' as never,
    tempDirName: '.farebox/mutants',
    ignorePatterns: ['**', '!server/**', '!harness/**', '!test/mutants/**', '!package.json'],
    // It would be read by an interface that TypeScript 7 does not have.
    tsconfigFile: '.farebox/no-tsconfig.json',
  }).runMutationTest()
  const lines = readFileSync(path.join(ROOT, source), 'utf8').split('\n')
  const broken = results.find(({ status }) => status === 'RuntimeError' || status === 'CompileError')
  if (broken !== undefined) throw new Error(`a mutant of ${source} could not be run: ${broken.statusReason}`)
  const tried = results.filter(({ status }) => status !== 'Ignored')
  const survivors = tried.filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
  return {
    mutants: tried.length,
    killed: tried.length - survivors.length,
    timedOut: tried.filter(({ status }) => status === 'Timeout').length,
    survivors: survivors.map(({ location: { start, end }, replacement = '' }) => ({
      place: `${source}:${start.line}:${start.column}`,
      line: (lines[start.line - 1] ?? '').trim(),
      was: inOneLine(textBetween(lines, start, end)),
      becomes: inOneLine(replacement),
    })),
  }
}

type Position = { readonly line: number; readonly column: number }

/** Lines and columns count from 1; the end is behind what is meant. */
function textBetween(lines: readonly string[], start: Position, end: Position): string {
  const within = lines.slice(start.line - 1, end.line)
  const last = (within.pop() ?? '').slice(0, end.column - 1)
  return [...within, last].join('\n').slice(start.column - 1)
}

const SHOWN_CHARACTERS = 120
const inOneLine = (text: string) => text.replaceAll(/\s+/g, ' ').slice(0, SHOWN_CHARACTERS)

const Accepted = z.array(z.object({ source: z.string(), line: z.string(), becomes: z.string(), reason: z.string() }))
export type Accepted = z.output<typeof Accepted>[number]

/** Survivors that nobody can kill, or that nobody should, each with the reason. */
export function readAccepted(file: string): readonly Accepted[] {
  return Accepted.parse(JSON.parse(readFileSync(path.join(ROOT, file), 'utf8')))
}
