import { z } from 'zod'
import { Fault } from '../../kernel/fault.ts'
import { may } from '../../kernel/role.ts'
import type { Trouble } from '../../pages/form.ts'
import type { Form } from '../../pages/form-data.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { keyView, revokeView } from '../pages/key.ts'
import {
  endOfDay,
  KEY_FIELDS,
  type KeyKind,
  type KeyValues,
  keyFormView,
  proposed,
  valuesOf,
} from '../pages/key-form.ts'
import { keyForm, keyListForm, keySecretForm, keyStatesForm, operatorWords, type ShownKey } from '../pages/key-parts.ts'
import { chosenIn, keysView } from '../pages/keys.ts'
import type { RouteParts } from '../parts.ts'
import { type ConsoleVisit, pathIn } from '../visits.ts'

const PAGE = '50'

export function keyRoutes(parts: RouteParts): readonly PageRoute[] {
  const { visits, frame, time } = parts

  function show(
    visit: ConsoleVisit,
    title: string,
    main: Parameters<typeof frame.page>[0]['main'],
    status = 200,
  ): Page {
    const where = { workspaceId: visit.workspace.id, mode: visit.mode }
    return frame.page({ status, title, section: 'keys', where, who: visit, main })
  }

  async function statesOf({ ask }: ConsoleVisit, keys: readonly { readonly id: string }[]) {
    if (keys.length === 0) return new Map()
    const query = { keys: keys.map(({ id }) => id).join(',') }
    const { data } = await ask(keyStatesForm, { operationId: 'list_key_states', query })
    return new Map(data.map((state) => [state.id, state]))
  }

  async function list(visit: ConsoleVisit): Promise<Page> {
    const chosen = chosenIn(visit.query)
    const cursor = visit.query.get('cursor')
    const filter = Object.fromEntries(new URLSearchParams(chosen))
    const query = { limit: PAGE, ...filter, ...(cursor !== undefined && { cursor }) }
    const { data: keys, next_cursor: next } = await visit.ask(keyListForm, { operationId: 'list_keys', query })
    const states = await statesOf(visit, keys)
    const mayMake = may(visit.workspace.role, 'keys.manage')
    return show(
      visit,
      'Keys',
      keysView({ keys, states, nowMs: time.nowMs(), path: keysIn(visit), chosen, next, mayMake }),
    )
  }

  async function showKey(
    visit: ConsoleVisit,
    key: ShownKey,
    secret: string | null = null,
    trouble: Trouble | null = null,
    status = 200,
  ) {
    // A new secret is shown whatever can't be read about its key: it stands nowhere else.
    const states = await statesOf(visit, [key]).catch((error: unknown) => {
      if (secret === null) throw error
      return new Map()
    })
    const main = keyView(parts, {
      ...{ key, state: states.get(key.id), nowMs: time.nowMs(), path: keysIn(visit), secret, trouble },
      ...{ formToken: visit.formToken, idempotencyKey: visit.idempotencyKey },
      mayChange: may(visit.workspace.role, 'keys.manage'),
    })
    return show(visit, key.name, main, status)
  }

  function showForm(
    visit: ConsoleVisit,
    kind: KeyKind,
    values: KeyValues,
    key: Changed | null,
    trouble: Trouble | null = null,
    status = 200,
  ): Page {
    const { formToken, idempotencyKey } = visit
    const main = keyFormView({ formToken, idempotencyKey, kind, values, trouble, path: keysIn(visit), key })
    const title = kind === 'ticket' ? 'Give a ticket' : 'New key'
    return show(visit, key === null ? title : `Change ${key.name}`, main, status)
  }

  function create(visit: ConsoleVisit): Promise<Page> {
    const values = valuesIn(visit.form)
    const kind = visit.form.get('kind') === 'ticket' ? 'ticket' : 'key'
    return orTrouble(
      kind === 'ticket' ? 'No ticket was made' : 'No key was made',
      async () => {
        const { body } = await visit.change({
          operationId: 'create_key',
          body: { kind, name: values.name ?? '', ...termsIn(values, kind) },
        })
        return showMade(visit, keySecretForm.parse(body))
      },
      (trouble, status) => showForm(visit, kind, values, null, trouble, status),
    )
  }

  /** With what is told this once; a form that is sent again is told nothing of it. */
  function showMade(visit: ConsoleVisit, made: z.output<typeof keySecretForm>): Promise<Page> {
    const once = made.link ?? made.secret
    return showKey(visit, made, once, once === null ? SECRET_WAS_SHOWN : null)
  }

  async function update(visit: ConsoleVisit): Promise<Page> {
    const key = await keyOf(visit)
    const values = valuesIn(visit.form)
    const etag = visit.form.get('etag') ?? ''
    const before = visit.form.get('before') ?? ''
    return orTrouble(
      'Nothing was changed',
      async () => {
        const body = changedTerms(values, before, key.kind)
        await visit.change({ ...about(visit, 'update_key'), body, ifMatch: etag })
        return seeOther(`${keysIn(visit)}/${key.id}`)
      },
      (trouble, status) => showForm(visit, key.kind, values, changedFrom(key, etag, before), trouble, status),
    )
  }

  async function rotate(visit: ConsoleVisit): Promise<Page> {
    // An empty field is refused: it is not "end the old secret at once".
    const overlap = Number(visit.form.get('overlap') || Number.NaN)
    return orTrouble(
      'The key was not rotated',
      async () => {
        await keyOf(visit)
        const { body } = await visit.change({ ...about(visit, 'rotate_key'), body: { overlap_seconds: overlap } })
        return showMade(visit, keySecretForm.parse(body))
      },
      async (trouble, status) => showKey(visit, await keyOf(visit), null, trouble, status),
    )
  }

  async function revoke(visit: ConsoleVisit): Promise<Page> {
    return orTrouble(
      'The key was not revoked',
      async () => {
        await keyOf(visit)
        await visit.change(about(visit, 'revoke_key'))
        return seeOther(`${keysIn(visit)}/${visit.params.key ?? ''}`)
      },
      async (trouble, status) => showKey(visit, await keyOf(visit), null, trouble, status),
    )
  }

  return [
    visits.get('/keys', list),
    visits.get('/keys/new', (visit) => showForm(visit, 'key', proposed('key', time.nowMs()), null)),
    visits.get('/keys/new-ticket', (visit) => showForm(visit, 'ticket', proposed('ticket', time.nowMs()), null)),
    visits.post('/keys', create),
    visits.get('/keys/:key', async (visit) => showKey(visit, await keyOf(visit))),
    visits.get('/keys/:key/edit', async (visit) => {
      const { body, etag = '' } = await visit.change(about(visit, 'get_key'))
      const key = keyForm.parse(body)
      const values = valuesOf(key)
      // What a refusal proposes is filled in, and saved by nobody but who reads it.
      const amount = visit.query.get('amount') ?? values.amount ?? ''
      return showForm(visit, key.kind, { ...values, amount }, changedFrom(key, etag, JSON.stringify(values)))
    }),
    visits.post('/keys/:key', update),
    visits.post('/keys/:key/rotate', rotate),
    visits.get('/keys/:key/revoke', async (visit) => {
      const { formToken, idempotencyKey } = visit
      return show(
        visit,
        'Revoke a key',
        revokeView({ key: await keyOf(visit), path: keysIn(visit), formToken, idempotencyKey }),
      )
    }),
    visits.post('/keys/:key/revoke', revoke),
  ]
}

type Changed = NonNullable<Parameters<typeof keyFormView>[0]['key']>

const changedFrom = (key: ShownKey, etag: string, before: string): Changed => ({
  id: key.id,
  name: key.name,
  etag,
  before,
  byOperator: operatorWords(key),
})

const keysIn = (visit: ConsoleVisit) => pathIn(visit, '/keys')

function about({ params: { key = '' } }: ConsoleVisit, operationId: string) {
  return { operationId, params: { key_id: key } }
}

/** One of the mode that the path names. */
async function keyOf(visit: ConsoleVisit): Promise<ShownKey> {
  const key = await visit.ask(keyForm, about(visit, 'get_key'))
  if (key.mode !== visit.mode) throw new Fault('resource_not_found')
  return key
}

/** A refusal is told above what was sent. What is wrong on our side is told by the frame. */
async function orTrouble(
  title: string,
  work: () => Promise<Page>,
  show: (trouble: Trouble, status: number) => Page | Promise<Page>,
): Promise<Page> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Fault) || error.status >= 500 || error.code === 'resource_not_found') throw error
    return show({ title, text: error.code === 'precondition_failed' ? CHANGED : error.message }, error.status)
  }
}

/** A form that is sent twice, as by a double click, makes one secret, and only the first answer has it. */
const SECRET_WAS_SHOWN: Trouble = {
  title: 'This form was sent twice',
  text: 'The secret was in the first answer, and is not kept. If you have not copied it, rotate the key.',
}

const CHANGED = 'Somebody else has changed the key since you opened it. Open it again, and look what is different.'

function valuesIn(form: Form): KeyValues {
  return Object.fromEntries(['name', ...KEY_FIELDS].map((name) => [name, form.get(name) ?? '']))
}

/** Fields as the account API takes them: an empty one takes the limit away. */
function termsIn(values: KeyValues, kind: KeyKind) {
  const given = (name: keyof KeyValues) => (values[name] ?? '').trim()
  const rate = (name: keyof KeyValues) => (given(name) === '' ? null : Number(given(name).replaceAll(',', '')))
  const words = (name: keyof KeyValues) => (given(name) === '' ? null : given(name).split(/[\s,]+/))
  return {
    budget: given('amount') === '' ? null : { period: given('period'), amount_usd: given('amount').replace(/^\$/, '') },
    rates: { requests_per_minute: rate('requests'), tokens_per_minute: rate('tokens'), concurrency: rate('calls') },
    scopes: words('scopes'),
    allowed_addresses: words('addresses'),
    expires_at: given('expires') === '' ? null : endOfDay(given('expires'), kind),
  }
}

const shownBefore = z.record(z.string(), z.string())

/**
 * What somebody changed of what the form showed them. The rest is left alone: the page says less of it than is kept, such as the day of a moment. It is compared with what was
 * shown, and not with what is there, so that the same form sent again asks for the same change.
 */
function changedTerms(values: KeyValues, before: string, kind: KeyKind) {
  const shown = shownIn(before)
  // A browser sends the lines of a text with other ends than it was shown.
  const words = (text = '') => text.trim().split(/\s+/).join(' ')
  const isSame = (name: keyof KeyValues) => words(values[name]) === words(shown[name])
  const terms = Object.entries(termsIn(values, kind))
  return Object.fromEntries(terms.filter(([term]) => !FIELDS_OF[term]?.every(isSame)))
}

/** What each term is filled in by. */
const FIELDS_OF: Readonly<Record<string, readonly (keyof KeyValues)[]>> = {
  budget: ['amount', 'period'],
  rates: ['requests', 'tokens', 'calls'],
  scopes: ['scopes'],
  allowed_addresses: ['addresses'],
  expires_at: ['expires'],
}

function shownIn(before: string): KeyValues {
  try {
    return shownBefore.parse(JSON.parse(before))
  } catch {
    throw new Fault('invalid_request', { detail: 'Open the form again: it was not sent whole.' })
  }
}
