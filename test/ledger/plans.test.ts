import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { z } from 'zod'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { beginBatch } from '../../server/src/calls/begin-batch.ts'
import { endBatch } from '../../server/src/calls/end-batch.ts'
import { beginFitting, isUsual } from '../../server/src/calls/fast-begin.ts'
import { endFitting } from '../../server/src/calls/fast-end.ts'
import type { Statement } from '../../server/src/calls/query.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { createColumnTypes } from '../../server/src/storage/column-types.ts'
import { startupOptions } from '../../server/src/storage/connection.ts'
import { MONEY_SETTINGS } from '../../server/src/storage/pools.ts'
import { callOf, makeParty, type Party, postOf, unfailed } from './session.ts'
import { connect, ids, makeAllowance, pg } from './world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const node = z.object({
  'Node Type': z.string(),
  'Relation Name': z.string().optional(),
  'Index Name': z.string().optional(),
  'Index Cond': z.string().optional(),
  get Plans() {
    return z.array(node).optional()
  },
})
type Node = z.infer<typeof node>

/** A new connection, whose plans are all made now, and every plan that runs on it. */
async function openExplained(options?: string) {
  const client = new pg.Client({
    connectionString: database.url,
    types: createColumnTypes(),
    ...(options !== undefined && { options }),
  })
  await client.connect()
  const nodes: Node[] = []
  client.on('notice', ({ message = '' }) => {
    const plan = /plan:\n(\{.*)/s.exec(message)?.[1]
    if (plan !== undefined) nodes.push(...flat(z.object({ Plan: node }).parse(JSON.parse(plan)).Plan))
  })
  await client.query("load 'auto_explain'")
  await client.query(`set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
    set auto_explain.log_format = json; set client_min_messages = log`)
  const run = async ({ text, values }: Statement) =>
    (await client.query<unknown[]>({ text, values: [...values], rowMode: 'array' })).rows
  return { run, nodes, close: () => client.end() }
}

function flat(one: Node): Node[] {
  return [one, ...(one.Plans ?? []).flatMap(flat)]
}

/** What reads a table otherwise than by place, or by an index from its first column on. */
async function wanderers(nodes: readonly Node[]): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string; first: string }>(
    'select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid, 1, true) as first from pg_index',
  )
  const firstOf = new Map(rows.map(({ name, first }) => [name, first]))
  const isFound = ({ 'Index Name': index = '', 'Index Cond': condition = '' }: Node) =>
    new RegExp(`\\b${firstOf.get(index)} =`).test(condition)
  return nodes
    .filter((one) => one['Relation Name'] !== undefined && !['ModifyTable', 'Tid Scan'].includes(one['Node Type']))
    .filter((one) => !(/^Index (Only )?Scan$/.test(one['Node Type']) && isFound(one)))
    .map((one) => `${one['Node Type']} of ${one['Relation Name']} by ${one['Index Name']} where ${one['Index Cond']}`)
}

async function makeFull(): Promise<Party & { allowances: readonly string[] }> {
  const party = await makeParty(pool, 1_000n)
  const allowances = [
    await makeAllowance(pool, party.accountId, 'day', 1_000n),
    await makeAllowance(pool, party.accountId, 'total', 1_000n),
  ]
  return { ...party, allowances }
}

const STATES = [
  ['new tables', 'select'],
  ['tables that were used and are empty again', 'vacuum analyze'],
] as const

describe('the plans of the statements that begin and end calls', () => {
  for (const [state, prepare] of STATES) {
    it(`find every row by place or index, though made over ${state}, for a batch of one and of many`, async () => {
      const parties = await Promise.all([makeFull(), makeFull(), makeFull()])
      await pool.query(prepare)
      const { run, nodes, close } = await openExplained()
      const ownerId = ids.next()
      const key = { scope: 'key', key: 'a', limit: 1, fingerprint: '', keepSeconds: 60, endsWithOwner: false }
      const slot = { ...key, scope: 'concurrency', key: 'all', keepSeconds: 0 }
      const full = (party: Awaited<ReturnType<typeof makeFull>>) =>
        callOf(party, {
          hold: 10n,
          tokens: 5,
          allowances: party.allowances,
          windows: [{ group: 'all', seconds: 60, requestLimit: 100, tokenLimit: 1_000 }],
          claims: [key, { ...slot, limit: 9 }],
        })
      const [one] = parties
      const ofSlots = (limit: number) => callOf(one, { hold: 10n, claims: [{ ...slot, limit }] })
      const alone = [ofSlots(2)]
      for (const batch of [[full(one)], [...parties.slice(1).map(full), full(one)], alone]) {
        for (let times = 1; times <= 2; times += 1) await beginBatch(run, ownerId, batch)
        if (batch === alone) await beginBatch(run, ownerId, [ofSlots(1)])
        const endings = batch.map((call, at) => ({ ...postOf(call, 5n), ...(at === 1 && { amount: null }) }))
        for (let times = 1; times <= 2; times += 1) await endBatch(run, endings)
      }
      await close()
      assert.ok(nodes.filter((one) => one['Relation Name'] === 'holds').length > 8)
      assert.ok(nodes.filter((one) => one['Index Name'] === 'holds_at_once').length > 2)
      assert.deepEqual(await wanderers(nodes), [])
    })
  }
})

function usual(party: Awaited<ReturnType<typeof makeFull>>) {
  const [own] = party.allowances
  const call = {
    ...callOf(party, { tokens: 5, windows: [{ group: 'all', seconds: 60, requestLimit: 100, tokenLimit: 1_000 }] }),
    hold: { amount: nanos(10n), terms: '{}', allowances: own === undefined ? [] : [own], own },
  }
  assert.ok(isUsual(call))
  return call
}

describe('the plans of the statements for calls that fit', () => {
  for (const [state, prepare] of STATES) {
    it(`find every row by an index, with the settings of their connections, though made over ${state}`, async () => {
      const parties = await Promise.all([makeFull(), makeFull(), makeFull()])
      for (const { credentialId, allowances } of parties)
        await pool.query('select meter_budget(credential => $1, allowance => $2)', [credentialId, allowances[0]])
      await pool.query(prepare)
      const { run, nodes, close } = await openExplained(startupOptions(MONEY_SETTINGS))
      const [one] = parties
      for (const batch of [
        [usual(one)],
        parties.map(usual),
        [usual(one), usual(one), ...parties.slice(1).map(usual)],
      ]) {
        const begun = unfailed(await beginFitting(run, ids.next(), batch))
        assert.deepEqual(new Set(begun.map((judgement) => judgement?.outcome)), new Set(['begun']))
        // As if the period had begun anew, so that it is charged elsewhere.
        await pool.query(
          "update credentials set budget_ends_at = clock_timestamp() - interval '1 hour' where budget_id is not null",
        )
        const endings = batch.map((call) => ({ ...call, ending: postOf(call, 5n), call }))
        const ended = unfailed(await endFitting(run, endings))
        assert.deepEqual(new Set(ended.map((settlement) => settlement?.outcome)), new Set(['posted']))
        await pool.query(
          "update credentials set budget_ends_at = clock_timestamp() + interval '1 hour' where budget_id is not null",
        )
      }
      await close()
      for (const table of ['accounts', 'credentials', 'holds', 'kept_periods'])
        assert.ok(
          nodes.filter((one) => one['Relation Name'] === table && one['Node Type'] !== 'ModifyTable').length > 2,
          table,
        )
      assert.deepEqual(await wanderers(nodes), [])
    })
  }
})

describe('the plans of the statement that puts budgets to their credentials', () => {
  for (const [state, prepare] of STATES) {
    it(`find every row by an index, with the settings of their connections, though made over ${state}`, async () => {
      const parties = await Promise.all([makeFull(), makeFull(), makeFull()])
      await pool.query(prepare)
      const { run, nodes, close } = await openExplained(startupOptions(MONEY_SETTINGS))
      const [one, ...others] = parties
      for (const [batch, budgets] of [
        [[one], 1],
        [others, 3],
        [parties, 3],
      ] as const) {
        const calls = batch.map(usual)
        const begun = await beginBatch(run, ids.next(), calls, calls)
        assert.deepEqual(new Set(begun.map(({ outcome }) => outcome)), new Set(['begun']))
        const { rows } = await pool.query(
          'select id from credentials where budget_starts_at = period_start($1, now()) and id = any ($2)',
          ['day', parties.map(({ credentialId }) => credentialId)],
        )
        assert.equal(rows.length, budgets)
        // As if the period that stands there were that of yesterday, so that the last batch keeps it and puts the next one there.
        if (batch !== parties)
          await pool.query(
            "update credentials set budget_starts_at = budget_starts_at - interval '1 day' where id = any ($1) and $2",
            [parties.map(({ credentialId }) => credentialId), batch === others],
          )
      }
      await close()
      for (const table of ['accounts', 'credentials', 'allowances', 'kept_periods'])
        assert.ok(
          nodes.filter((node) => node['Relation Name'] === table && node['Node Type'] !== 'ModifyTable').length > 2,
          table,
        )
      assert.deepEqual(await wanderers(nodes), [])
    })
  }
})

describe('the plan of the statement that looks for the calls of a process', () => {
  for (const [state, prepare] of STATES) {
    it(`finds them by the index of owners, though made over ${state}`, async () => {
      await pool.query(prepare)
      const { run, nodes, close } = await openExplained()
      await run({ name: '', text: 'select id from open_calls_of($1, 100) id', values: [ids.next()] })
      await close()
      assert.equal(nodes.filter((one) => one['Index Name'] === 'holds_of_owner').length, 1)
      assert.deepEqual(await wanderers(nodes), [])
    })
  }
})

describe('the plan of a charge that is given back', () => {
  it('opens the day of the charge and no other, with the settings of connections for money', async () => {
    const party = await makeParty(pool, 1_000n)
    const call = callOf(party, { hold: 10n })
    const { run, close } = await openExplained(startupOptions(MONEY_SETTINGS))
    await beginBatch(run, ids.next(), [call])
    await endBatch(run, [postOf(call, 5n)])
    await run({ name: '', text: 'begin', values: [] })
    const given = await run({ name: '', text: 'select forgive_charge($1, 5)', values: [call.id] })
    assert.deepEqual(given, [[5n]])
    const days = await run({
      name: '',
      text: `select inhrelid::regclass::text, exists (select from pg_locks where pid = pg_backend_pid() and relation = inhrelid)
        from pg_inherits where inhparent = 'charges'::regclass`,
      values: [],
    })
    await run({ name: '', text: 'rollback', values: [] })
    await close()
    assert.ok(days.length > 2)
    assert.equal(days.filter(([, isLocked]) => isLocked).length, 1)
  })
})
