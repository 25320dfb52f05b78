/**
 * Where the result of a task is kept: in which columns of its row, and under which arguments of the function that ends it. The columns
 * are named after videos, which is all that tasks make today. Only the operation whose task it is writes and reads a result; whoever
 * stands between passes it on.
 */
export const RESULT_COLUMNS = [
  { column: 'video_url', argument: 'urls', type: 'bytea[]' },
  { column: 'seconds', argument: 'lengths', type: 'float8[]' },
  { column: 'videos', argument: 'counts', type: 'integer[]' },
  { column: 'resolution', argument: 'resolutions', type: 'integer[]' },
] as const

export type TaskResult = Readonly<Record<(typeof RESULT_COLUMNS)[number]['column'], Buffer | number | null>>
