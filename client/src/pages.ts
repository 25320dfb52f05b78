import type { Result } from './result.ts'

/** A list that is read page by page as it is walked: `for await (const one of list)`. */
export type Paged<Item, Page> = AsyncIterable<Item> & {
  /** Page by page, each with its own request id and cost. */
  readonly pages: () => AsyncIterable<Result<Page>>
}

type Parts<Item, Page> = {
  readonly read: (cursor: string | undefined) => Promise<Result<Page>>
  readonly itemsOf: (page: Page) => readonly Item[]
  /** Where the next page is; nothing after the last one. */
  readonly nextOf: (page: Page) => string | null | undefined
}

export function paged<Item, Page>({ read, itemsOf, nextOf }: Parts<Item, Page>): Paged<Item, Page> {
  async function* pages() {
    const seen = new Set<string>()
    for (let cursor: string | undefined; ; ) {
      const page = await read(cursor)
      yield page
      const next = nextOf(page.data)
      // Cursors that lead back would never end, and each page may be paid for.
      if (!next || seen.has(next)) return
      seen.add(next)
      cursor = next
    }
  }
  async function* items() {
    for await (const { data } of pages()) yield* itemsOf(data)
  }
  return { pages, [Symbol.asyncIterator]: items }
}
