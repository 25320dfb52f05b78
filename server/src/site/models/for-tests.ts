import type { Model } from '../../pricing/models.ts'

/** Owner of models that are there to fail in a way that a program is tested with. They come after those that answer. */
const OWNER = 'tests'

export function isForTests({ ownedBy }: Pick<Model, 'ownedBy'>): boolean {
  return ownedBy === OWNER
}

/** In their order, those for tests last. */
export function testsLast<M extends Pick<Model, 'ownedBy'>>(models: readonly M[]): readonly M[] {
  return [...models.filter((model) => !isForTests(model)), ...models.filter(isForTests)]
}
