import { registerHooks } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { StrykerOptions } from '@stryker-mutator/api/core'
import { commonTokens, declareClassPlugin, PluginKind, tokens } from '@stryker-mutator/api/plugin'
import {
  type DryRunResult,
  DryRunStatus,
  type MutantRunOptions,
  type TestRunner,
  type TestRunnerCapabilities,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner'
import { z } from 'zod'
import { tryTests } from './mutant-tests.ts'

const Options = z.object({ farebox: z.object({ source: z.string(), tests: z.array(z.string()).min(1) }) })
const TESTS = new URL('./mutant-tests.ts', import.meta.url).href

declare global {
  /** By which the code that Stryker has written knows which of its mutants is alive. */
  var __stryker__: { activeMutant?: string } | undefined
}

/**
 * Runs the tests of a file once for each of its mutants, all in one process: a process for each would spend its time on loading
 * what no mutant has changed. The file and its tests are loaded anew for each, so that what is worked out at loading is mutated too.
 */
class MutantRunner implements TestRunner {
  static readonly inject = tokens(commonTokens.options)
  readonly #source: string
  readonly #tests: readonly string[]
  #round = 0

  constructor(options: StrykerOptions) {
    const { source, tests } = Options.parse(options).farebox
    const urlOf = (file: string) => pathToFileURL(path.resolve(file)).href
    this.#source = urlOf(source)
    this.#tests = tests.map(urlOf)
  }

  capabilities(): TestRunnerCapabilities {
    return { reloadEnvironment: true }
  }

  async init(): Promise<void> {
    const renewed = new Set([this.#source, ...this.#tests])
    registerHooks({
      resolve: (specifier, context, next) => {
        const [parent = ''] = context.parentURL?.split('?') ?? []
        if (specifier === 'node:test' && this.#tests.includes(parent)) return { url: TESTS, shortCircuit: true }
        const found = next(specifier, context)
        return renewed.has(found.url) ? { ...found, url: `${found.url}?round=${this.#round}` } : found
      },
    })
  }

  dryRun(): Promise<DryRunResult> {
    return this.#run(undefined)
  }

  async mutantRun({ activeMutant }: MutantRunOptions) {
    return toMutantRunResult(await this.#run(activeMutant.id))
  }

  async #run(activeMutant: string | undefined): Promise<DryRunResult> {
    this.#round += 1
    globalThis.__stryker__ = activeMutant === undefined ? {} : { activeMutant }
    const { passed, failed } = await tryTests(async () => {
      for (const test of this.#tests) await import(test)
    })
    const told = (name: string) => ({ id: name, name, timeSpentMs: 0 })
    return {
      status: DryRunStatus.Complete,
      tests: [
        ...passed.map((name) => ({ ...told(name), status: TestStatus.Success as const })),
        ...(failed === undefined
          ? []
          : [{ ...told(failed.title), status: TestStatus.Failed as const, failureMessage: String(failed.error) }]),
      ],
    }
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'farebox', MutantRunner)]
