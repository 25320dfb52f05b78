import type { Visitor } from '../people/visitor.ts'
import type { Form } from './form-data.ts'
import type { Page } from './page.ts'

/** What a page's route is asked, without anything of the framework. */
export type Asked = {
  readonly visitor: Visitor
  readonly method: string
  /** The path alone, as it came. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  readonly query: Form
  /** What was sent by POST; nothing otherwise. */
  readonly form: Form
  readonly host: string
  readonly cookie: string | undefined
  readonly origin: string | undefined
  /** What the browser says of where a request comes from. */
  readonly fetchSite: string | undefined
  /** What it can read, and what it has already. */
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** A page that people see, or a form that they send. A GET changes nothing: mail scanners and browsers ask for it unasked. */
export type PageRoute = {
  readonly method: 'GET' | 'POST'
  /** Below site_url; `:name` is a parameter. */
  readonly path: string
  readonly answer: (asked: Asked) => Page | Promise<Page>
}
