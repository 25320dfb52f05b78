/**
 * Stands for `node:test` where mutants are tried: what tests register is run by whoever has loaded them, one after the other and
 * up to the first that fails, as often as there are mutants in one process.
 */
type Work = () => unknown
type Test = { readonly title: string; readonly work: Work }

let tests: Test[] = []
let endings: Work[] = []
let suites: readonly string[] = []

export function describe(title: string, register: () => void): void {
  const around = suites
  suites = [...around, title]
  register()
  suites = around
}

export function it(title: string, work: Work): void {
  tests.push({ title: [...suites, title].join(' › '), work })
}

export function after(work: Work): void {
  endings.push(work)
}

export type Tried = {
  readonly passed: readonly string[]
  readonly failed?: { readonly title: string; readonly error: unknown }
}

/** Loads tests and runs them. What can't even be loaded has failed. */
export async function tryTests(load: Work): Promise<Tried> {
  tests = []
  endings = []
  suites = []
  const passed: string[] = []
  let title = 'loading the tests'
  try {
    await load()
    for (const test of tests) {
      title = test.title
      await test.work()
      passed.push(title)
    }
    return { passed }
  } catch (error) {
    return { passed, failed: { title, error } }
  } finally {
    for (const work of endings) await work()
  }
}
