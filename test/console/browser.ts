import { createVisitor } from '../people/visitor.ts'

/** A browser in which a member has signed in. */
export function browserOf(siteUrl: string, { headers }: { readonly headers: Readonly<Record<string, string>> }) {
  const visitor = createVisitor({ url: siteUrl })
  const [name = '', value = ''] = (headers.cookie ?? '').split('=', 2)
  visitor.cookies.set(name, value)
  return visitor
}
