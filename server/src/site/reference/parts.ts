import { FAULTS, type FaultCode } from '../../kernel/fault.ts'
import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { Described, Parameter, Reference } from './described.ts'
import { type Extent, schemaTree, typeOf } from './schema-tree.ts'
import { words } from './words.ts'

/** A path that may break behind its slashes, with what is filled in set apart. */
export function shownPath(path: string): Html {
  return html`<code>${path.split(/(?<=\/)/).map((part) => html`${part.split(/(\{\w+\})/).map((piece) => (piece.startsWith('{') ? html`<b>${piece}</b>` : html`${piece}`))}<wbr>`)}</code>`
}

export function shownMethod(method: string): Html {
  return html`<span class="fb-method fb-method--${method.toLowerCase()}">${method}</span>`
}

export function parametersOf({ parameters }: Described, { resolve }: Reference): Html | undefined {
  if (parameters.length === 0) return undefined
  const item = ({ name, in: place, isRequired, description, schema }: Parameter) => {
    const type = typeOf(schema, resolve)
    return html`<li><div><code>${name}</code><span class="t">${place}${type === '' ? '' : `, ${type}`}</span>${isRequired ? html`<span class="r">required</span>` : undefined}<p>${words(description)}</p></div></li>`
  }
  return html`<ul class="fb-tree">${parameters.map(item)}</ul>`
}

export function bodyOf({ body }: Described, { resolve }: Reference): Html | undefined {
  return body === null ? undefined : schemaTree(body.schema, resolve)
}

/** What most callers give: the members of the body, and theirs. */
export function shortBodyOf({ body }: Described, { resolve }: Reference): Html | undefined {
  return body === null ? undefined : schemaTree(body.schema, resolve, SHORT)
}

/** The answers that most callers get, with their members and theirs. */
export function shortAnswersOf(
  { answers, ...described }: Described,
  reference: Reference,
): readonly Html[] | undefined {
  const usual = answers.filter(({ status }) => status.startsWith('2'))
  return usual.length === 0 ? undefined : answersOf({ ...described, answers: usual }, reference, SHORT)
}

const SHORT = { depth: 2, hasRefused: false }

export function answersOf({ answers }: Described, { resolve }: Reference, extent?: Extent): readonly Html[] {
  return answers.map(({ status, description, type, schema }) => {
    const badge =
      status === 'default'
        ? html`<span class="fb-badge">Otherwise</span>`
        : html`<span class="fb-badge fb-badge--ok">${icon('check')}${status}</span>`
    const tree = schema === null ? undefined : schemaTree(schema, resolve, extent)
    return html`<h3>Answer ${badge} <span class="fb-dim">${type ?? ''}</span></h3><p class="fb-soft">${words(description)}</p>${tree}`
  })
}

/** What is refused, in the words of the table from which refusals are made; those alone that are wanted. */
export function errorsOf({ errors: all }: Described, wanted?: ReadonlySet<FaultCode>): Html | undefined {
  const errors = wanted === undefined ? all : all.filter(({ code }) => wanted.has(code))
  if (errors.length === 0) return undefined
  return html`<table class="fb-table fb-table--plain fb-table--dense errors"><thead><tr><th scope="col">Answer</th><th scope="col">What happened, and what to do</th></tr></thead><tbody>${errors.map(({ status, code }) => html`<tr><th scope="row"><span class="fb-num">${status}</span> <code>${code}</code></th><td class="fb-soft">${FAULTS[code].text}</td></tr>`)}</tbody></table>`
}
