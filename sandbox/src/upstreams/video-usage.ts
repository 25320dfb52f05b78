import { reported } from '../deviants.ts'
import type { JsonObject } from '../json.ts'
import { type State, truthAt } from './video-course.ts'
import type { VideoTask } from './video-task.ts'

/** The seconds that the vendor charges for, whatever it reports; undefined while it charges nothing. */
export function chargedSeconds(task: VideoTask, state: State): number | undefined {
  if (state === 'SUCCEEDED') return task.job.seconds
  return state === 'CANCELED' ? task.course.canceledSeconds : undefined
}

/** The figures as the vendor reports them: its models differ, and some report them as a text. */
export function usageOf(task: VideoTask, nowMs: number, times = 1): JsonObject | string | undefined {
  const charged = chargedSeconds(task, truthAt(task, nowMs))
  if (charged === undefined) return undefined
  const seconds = times === 1 ? charged : reported(charged, times)
  const { sr, size, count } = task.job
  switch (task.course.usageForm) {
    case 'new':
      return newForm(seconds, task)
    case 'string':
      return JSON.stringify(newForm(seconds, task))
    case 'old':
      return { video_duration: seconds, video_ratio: size, SR: sr, video_count: count }
    case 'ratio':
      return { video_duration: seconds, video_ratio: size, video_count: count }
    case 'broken':
      return '{"output_video_duration": oops'
    case 'none':
      return undefined
  }
}

function newForm(seconds: number, { job: { sr, size, count } }: VideoTask): JsonObject {
  return {
    duration: seconds,
    input_video_duration: 0,
    output_video_duration: seconds,
    SR: sr,
    size,
    video_count: count,
  }
}
