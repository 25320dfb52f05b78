import type { Course } from './video-course.ts'
import type { Job } from './video-job.ts'

/** A task that the vendor knows, and what was asked about it. How it goes is worked out from this whenever somebody asks. */
export type VideoTask = {
  readonly n: number
  readonly id: string
  /** The `X-Request-Id` of the call that made it. */
  readonly requestId: string | null
  readonly job: Job
  readonly course: Course
  readonly createdAtMs: number
  canceledAtMs: number | undefined
  polls: number
  lastPollAtMs: number | undefined
  cancels: number
}
