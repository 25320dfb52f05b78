/** What pages say, read back as text. */

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }

export function textOf(markup: string): string {
  return markup.replace(/<[^>]*>/g, '').replace(/&(lt|gt|quot|#39|amp);/g, (whole, name) => ENTITIES[name] ?? whole)
}

/** The pieces of code on a page, by what their regions are called. */
export function codeIn(page: string): ReadonlyMap<string, string> {
  const found = page.matchAll(/<pre tabindex="0" role="region" aria-label="([^"]*)"><code>(.*?)<\/code><\/pre>/gs)
  return new Map([...found].map(([, label = '', code = '']) => [textOf(label), textOf(code)]))
}

/** Exact amounts on a page, as they are copied. */
export function amountsIn(markup: string): readonly string[] {
  return [...markup.matchAll(/<data class="fb-money" value="([^"]*)">/g)].map(([, value = '']) => value)
}

/** The rows of a page's tables: what each cell says, exact amounts by their value. */
export function rowsIn(page: string): readonly (readonly string[])[] {
  return [...page.matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = '']) => amountsIn(cell)[0] ?? textOf(cell)),
  )
}
