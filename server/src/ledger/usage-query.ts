import type { Id } from '../kernel/ids.ts'

/** What a credential used, or all credentials of an account, by days or hours of UTC. */
export type UsageQuery = {
  readonly scope: { readonly credentialId: Id } | { readonly accountId: Id }
  /** Whole Unix seconds, the first of which belongs to the window. */
  readonly startSeconds: number
  /** Whole Unix seconds, the first of which is past the window. */
  readonly endSeconds: number
  /** About now, by PostgreSQL's clock. It decides what is read, never what the report says. */
  readonly nowSeconds?: number
  readonly bucket?: 'day' | 'hour'
  /** Of all that was used, what matches every one of these. */
  readonly filter?: UsageFilter
  readonly groupBy?: GroupBy
}

export type UsageFilter = {
  readonly credentialId?: Id
  readonly operation?: string
  readonly model?: string
  /** At most one of the two: there are no sums of both. */
  readonly tag?: { readonly name: string; readonly value: string }
  readonly endUserId?: Id
}

/** A tag by its name. */
export type GroupBy = 'key' | 'operation' | 'model' | 'end_user' | { readonly tag: string }
