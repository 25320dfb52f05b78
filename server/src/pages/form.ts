import { type Html, html } from '../kernel/html.ts'
import { FORM_TOKEN } from './form-token.ts'
import { icon } from './icons.ts'
import { RETURN_TO } from './return-to.ts'

/** What somebody has filled in, and what is wrong with it, by field. */
export type Filled<Name extends string = string> = {
  readonly values?: Partial<Record<Name, string>>
  readonly problems?: Partial<Record<Name, string>>
  /** What is wrong with all of it together. */
  readonly trouble?: Trouble
  /** Whether it says something else than the page did that it was sent from. */
  readonly isChanged?: boolean
}

export type Trouble = { readonly title: string; readonly text?: string | Html }

/** What every form of ours has beside its fields. */
export type FormParts = { readonly formToken: string; readonly returnTo?: string | undefined }

export function form(
  action: string,
  { formToken, returnTo }: FormParts,
  content: Html,
  kind = '',
  /** What a script of ours makes of it. */
  island?: string,
): Html {
  return html`<form action="${action}" method="post" novalidate${kind === '' ? null : html` class="${kind}"`}${island === undefined ? null : html` data-island="${island}"`}><input type="hidden" name="${FORM_TOKEN}" value="${formToken}">${
    returnTo === undefined ? null : html`<input type="hidden" name="${RETURN_TO}" value="${returnTo}">`
  }
${content}</form>`
}

type Field = {
  readonly name: string
  readonly label: string
  readonly type: 'text' | 'email' | 'password'
  readonly autocomplete: string
  readonly value?: string | undefined
  readonly problem?: string | undefined
  readonly hint?: string
  /** Beside its label. */
  readonly beside?: Html
  /** Figures and letters that are typed off: shown in one width, at most so many. */
  readonly code?: { readonly length: number; readonly isNumeric: boolean }
}

export function field({ name, label, type, autocomplete, value, problem, hint, beside, code }: Field): Html {
  const described = [problem === undefined ? '' : `${name}-e`, hint === undefined ? '' : `${name}-h`].filter(Boolean)
  const labelled = html`<label for="${name}">${label}</label>`
  return html`<div class="fb-field">${beside === undefined ? labelled : html`<div class="fb-field__row">${labelled}${beside}</div>`}<input class="fb-input${
    code === undefined ? '' : ' fb-digits'
  }" id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" required${
    value === undefined ? null : html` value="${value}"`
  }${code === undefined ? null : codeAttributes(code)}${problem === undefined ? null : html` aria-invalid="true"`}${
    described.length === 0 ? null : html` aria-describedby="${described.join(' ')}"`
  }>${
    problem === undefined
      ? null
      : html`<p class="fb-error" id="${name}-e">${icon('refused')}<span>${problem}</span></p>`
  }${hint === undefined ? null : html`<p class="fb-hint" id="${name}-h">${hint}</p>`}</div>
`
}

function codeAttributes({ length, isNumeric }: { readonly length: number; readonly isNumeric: boolean }): Html {
  return html` inputmode="${isNumeric ? 'numeric' : 'text'}" autocapitalize="characters" spellcheck="false" maxlength="${length}"`
}

/** Six figures, and a gap in the middle for whoever types one. */
export const CODE = { length: 7, isNumeric: true } as const
export const RECOVERY = { length: 24, isNumeric: false } as const

/** Where a code of an authenticator is typed, or a recovery code. */
export function codeField(given: Pick<Field, 'name' | 'label' | 'problem' | 'hint' | 'code' | 'value'>): Html {
  return field({ type: 'text', autocomplete: 'one-time-code', ...given })
}

type Button = { readonly name: string; readonly value: string; readonly isQuiet?: boolean }

export function button(text: string, { name, value, isQuiet = false }: Partial<Button> = {}): Html {
  return html`<button class="fb-button fb-button--large${isQuiet ? ' fb-button--quiet' : ''} fb-button--wide" type="submit"${
    name === undefined ? null : html` name="${name}" value="${value}"`
  }>${text}</button>
`
}

/** A way to go on that sends nothing. */
export function wayOn(href: string, text: string, isQuiet = false): Html {
  return html`<a class="fb-button fb-button--large${isQuiet ? ' fb-button--quiet' : ''} fb-button--wide" href="${href}">${text}</a>`
}

const COUNTS = ['Nothing has', 'One thing has', 'Two things have', 'Three things have', 'Four things have']

/** What has to be corrected, above all fields, with a link to each; read out at once to whoever does not see it. */
export function summary({ problems = {}, trouble }: Filled, labels: Readonly<Record<string, string>>): Html | null {
  const wrong = Object.keys(problems)
  if (trouble === undefined && wrong.length === 0) return null
  const title = trouble?.title ?? `${COUNTS[wrong.length] ?? `${wrong.length} things have`} to be corrected`
  const links = wrong.map((name) => html`<li><a href="#${name}">${labels[name] ?? name}</a></li>`)
  return html`<div class="fb-callout fb-callout--bad card-page__sum" role="alert">${icon('refused')}<div><strong>${title}</strong>${
    trouble?.text
  }${links.length === 0 ? null : html`<ul>${links}</ul>`}</div></div>
`
}

type Tone = 'ok' | 'warn' | 'plain'
const TONES = { ok: [' fb-callout--ok', 'check'], warn: [' fb-callout--warn', 'warn'], plain: ['', 'info'] } as const

/** Something to know, beside what there is to do. */
export function callout(tone: Tone, title: string, text: Html | string | null, also = ''): Html {
  const [kind, shape] = TONES[tone]
  return html`<div class="fb-callout${kind}${also}"${tone === 'ok' ? html` role="status"` : null}>${icon(shape)}<div><strong>${title}</strong>${text}</div></div>
`
}

export function or(): Html {
  return html`<p class="or">or</p>
`
}
