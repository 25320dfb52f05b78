import type pg from 'pg'

/** What one transaction did to a key's window, in the order in which transactions had its account. */
export type Step = {
  readonly began: readonly { readonly id: string; readonly reserved: number; readonly atUs: number }[]
  readonly ended: readonly { readonly id: string; readonly used: number; readonly atUs: number }[]
  /** The row as it was left; undefined where it was not touched. */
  readonly window: Seen | undefined
}

export type Seen = { readonly startedAtUs: number; readonly requests: number; readonly tokens: number }

/**
 * Has PostgreSQL note every version of a window, every hold and every charge, with the transaction that made it. The numbers come
 * from the lock under which all three are written, so that their order for a key is that of the judgements.
 */
export async function watchRows(pool: pg.Pool): Promise<void> {
  await pool.query(`
    create table seen (
      n bigint generated always as identity, tx bigint not null default txid_current(),
      kind text not null, credential_id uuid, call_id uuid, tokens bigint not null, requests integer, at timestamptz
    );
    create function see_window() returns trigger language plpgsql as $$
    begin
      insert into seen (kind, credential_id, tokens, requests, at) values ('window', new.id, new.all_tokens, new.all_requests, new.all_started_at);
      return null;
    end $$;
    create function see_hold() returns trigger language plpgsql as $$
    begin
      insert into seen (kind, credential_id, call_id, tokens, at) values ('hold', new.credential_id, new.id, new.tokens_estimated, new.begun_at);
      return null;
    end $$;
    create function see_charge() returns trigger language plpgsql as $$
    begin
      insert into seen (kind, credential_id, call_id, tokens, at) values ('charge', new.credential_id, new.id,
        new.input_tokens + new.output_tokens + new.cache_read_tokens + new.cache_write_tokens, new.ended_at);
      return null;
    end $$;
    create trigger see_window after update of all_started_at, all_requests, all_tokens on credentials
    for each row when (new.all_started_at is not null) execute function see_window();
    create trigger see_hold after insert on holds for each row execute function see_hold();
    create trigger see_charge after insert on charges for each row execute function see_charge();
  `)
}

type Row = {
  readonly tx: string
  readonly kind: 'window' | 'hold' | 'charge'
  readonly call_id: string
  readonly tokens: number
  readonly requests: number
  readonly at_us: number
}

/** What was done to the window of a key, step by step. */
export async function stepsOf(pool: pg.Pool, keyId: string): Promise<readonly Step[]> {
  const { rows } = await pool.query<Row>(
    `select tx::text, kind, call_id, tokens::float8, requests, (extract(epoch from at) * 1000000)::float8 as at_us
     from seen where credential_id = $1 order by n`,
    [keyId],
  )
  return [...Map.groupBy(rows, ({ tx }) => tx).values()].map((own) => {
    const of = (kind: Row['kind']) => own.filter((row) => row.kind === kind)
    const window = of('window').at(-1)
    return {
      began: of('hold').map(({ call_id: id, tokens: reserved, at_us: atUs }) => ({ id, reserved, atUs })),
      ended: of('charge').map(({ call_id: id, tokens: used, at_us: atUs }) => ({ id, used, atUs })),
      window: window && { startedAtUs: window.at_us, requests: window.requests, tokens: window.tokens },
    }
  })
}
