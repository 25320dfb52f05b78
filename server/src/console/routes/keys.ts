import { Fault } from '../../kernel/fault.ts'
import { may } from '../../kernel/role.ts'
import type { Trouble } from '../../pages/form.ts'
import type { Form } from '../../pages/form-data.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { keyView, revokeView } from '../pages/key.ts'
import { KEY_FIELDS, type KeyValues, keyFormView, PROPOSED, valuesOf } from '../pages/key-form.ts'
import { keyForm, keyListForm, keySecretForm, keyStatesForm, operatorWords, type ShownKey } from '../pages/key-parts.ts'
import { keysView } from '../pages/keys.ts'
import type { RouteParts } from '../parts.ts'
import { type ConsoleVisit, pathIn } from '../visits.ts'

const STATES = ['active', 'expired', 'revoked']
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
    const given = visit.query.get('state') ?? ''
    const state = STATES.includes(given) ? given : ''
    const cursor = visit.query.get('cursor')
    const query = { limit: PAGE, ...(state !== '' && { state }), ...(cursor !== undefined && { cursor }) }
    const { data: keys, next_cursor: next } = await visit.ask(keyListForm, { operationId: 'list_keys', query })
    const states = await statesOf(visit, keys)
    const mayMake = may(visit.workspace.role, 'keys.manage')
    return show(
      visit,
      'Keys',
      keysView({ keys, states, nowMs: time.nowMs(), path: keysIn(visit), state, next, mayMake }),
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
    values: KeyValues,
    key: Changed | null,
    trouble: Trouble | null = null,
    status = 200,
  ): Page {
    const { formToken, idempotencyKey } = visit
    const main = keyFormView({ formToken, idempotencyKey, values, trouble, path: keysIn(visit), key })
    return show(visit, key === null ? 'New key' : `Change ${key.name}`, main, status)
  }

  function create(visit: ConsoleVisit): Promise<Page> {
    const values = valuesIn(visit.form)
    return orTrouble(
      'No key was made',
      async () => {
        const { body } = await visit.change({
          operationId: 'create_key',
          body: { name: values.name ?? '', ...termsIn(values) },
        })
        const made = keySecretForm.parse(body)
        return showKey(visit, made, made.secret, made.secret === null ? SECRET_WAS_SHOWN : null)
      },
      (trouble, status) => showForm(visit, values, null, trouble, status),
    )
  }

  async function update(visit: ConsoleVisit): Promise<Page> {
    const key = await keyOf(visit)
    const values = valuesIn(visit.form)
    const etag = visit.form.get('etag') ?? ''
    const expiresBefore = visit.form.get('expires_before') ?? ''
    const body = termsIn(values)
    // A day says less than the moment that was set: the same day changes nothing. Compared with what the form showed, so that
    // the same form sent again asks for the same change.
    const keepsEnd = expiresBefore === (values.expires ?? '').trim()
    return orTrouble(
      'Nothing was changed',
      async () => {
        const { expires_at: _, ...others } = body
        await visit.change({ ...about(visit, 'update_key'), body: keepsEnd ? others : body, ifMatch: etag })
        return seeOther(`${keysIn(visit)}/${key.id}`)
      },
      (trouble, status) => showForm(visit, values, changedFrom(key, etag, expiresBefore), trouble, status),
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
        const rotated = keySecretForm.parse(body)
        return showKey(visit, rotated, rotated.secret, rotated.secret === null ? SECRET_WAS_SHOWN : null)
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
    visits.get('/keys/new', (visit) => showForm(visit, PROPOSED, null)),
    visits.post('/keys', create),
    visits.get('/keys/:key', async (visit) => showKey(visit, await keyOf(visit))),
    visits.get('/keys/:key/edit', async (visit) => {
      const { body, etag = '' } = await visit.change(about(visit, 'get_key'))
      const key = keyForm.parse(body)
      const values = valuesOf(key)
      // What a refusal proposes is filled in, and saved by nobody but who reads it.
      const amount = visit.query.get('amount') ?? values.amount ?? ''
      return showForm(visit, { ...values, amount }, changedFrom(key, etag, values.expires ?? ''))
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

const changedFrom = (key: ShownKey, etag: string, expiresBefore: string): Changed => ({
  id: key.id,
  name: key.name,
  etag,
  expiresBefore,
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
function termsIn(values: KeyValues) {
  const given = (name: keyof KeyValues) => (values[name] ?? '').trim()
  const rate = (name: keyof KeyValues) => (given(name) === '' ? null : Number(given(name).replaceAll(',', '')))
  const words = (name: keyof KeyValues) => (given(name) === '' ? null : given(name).split(/[\s,]+/))
  return {
    budget: given('amount') === '' ? null : { period: given('period'), amount_usd: given('amount').replace(/^\$/, '') },
    rates: { requests_per_minute: rate('requests'), tokens_per_minute: rate('tokens'), concurrency: rate('calls') },
    scopes: words('scopes'),
    allowed_addresses: words('addresses'),
    expires_at: given('expires') === '' ? null : `${given('expires')}T00:00:00Z`,
  }
}
