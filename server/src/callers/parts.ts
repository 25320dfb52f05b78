import type pg from 'pg'
import type { Catalogue, Names } from '../catalogue/operation.ts'
import type { Begin } from '../gateway/begin.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Links } from '../links/links.ts'
import type { Models } from '../pricing/models.ts'
import type { KeptSold } from '../pricing/sold.ts'
import type { Tasks } from '../tasks/tasks.ts'
import type { HeaderNames } from '../wording/header-names.ts'

/** What the handlers of callers' free routes are made of. Each takes of it what it uses. */
export type CallerParts = {
  readonly pool: pg.Pool
  /** PostgreSQL's time: charges are booked by its clock. */
  readonly time: Pick<Clock, 'nowMs'>
  readonly begin: Begin
  readonly catalogue: Catalogue
  readonly models: Pick<Models, 'list' | 'find'>
  /** The operations that are sold in a mode. */
  readonly sold: Pick<KeptSold, 'now' | 'operations'>
  readonly tasks: Tasks
  readonly links: Pick<Links, 'list' | 'start' | 'revoke'>
  readonly names: Names
  readonly headerNames: HeaderNames
  /** Under which callers and their users reach us; undefined where nobody said. */
  readonly publicUrl: string | undefined
}
