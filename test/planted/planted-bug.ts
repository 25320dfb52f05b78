/**
 * A defect that is planted into a copy of the project, to see whether the tests notice it. It is a patch of the source,
 * never a switch in the product. CONTRIBUTING.md says which defects are worth one.
 */
export type PlantedBug = {
  readonly id: string
  /** What is wrong with the code once it is planted. */
  readonly title: string
  /** The promise that it breaks. */
  readonly promise: string
  /** Written by somebody who knows code and tests, or by somebody who has seen neither. */
  readonly author: 'insider' | 'blind'
  readonly edits: readonly Edit[]
  /** SQL that the copy's database runs after all migrations: to take away a constraint that would refuse what the bug does. */
  readonly sql?: string
  /** Each of these has to notice it. */
  readonly caughtBy: readonly Catcher[]
}

/** What a copy is changed by. */
export type Planted = Pick<PlantedBug, 'edits' | 'sql'>

export type Edit = {
  readonly file: string
  /** A part of one line that occurs exactly once, so that a patch that has become stale fails loudly. */
  readonly find: string
  readonly replace: string
}

export type Catcher = {
  readonly file: string
  /** A part of the titles of the tests that are to notice it, suites included; all of the file where it is left out. */
  readonly title?: string
}

/** The text of a file with its edits applied, in their order. */
export function patched(file: string, text: string, edits: readonly Edit[]): string {
  return edits
    .filter((edit) => edit.file === file)
    .reduce((source, { find, replace }) => {
      const [before, after, ...others] = source.split(find)
      if (before === undefined || after === undefined || others.length > 0) {
        const times = after === undefined ? 'not at all' : 'more than once'
        throw new Error(`the patch of ${file} is stale: this occurs ${times}:\n${find}`)
      }
      return before + replace + after
    }, text)
}
