import { decimal, nothing, oneOf, text, type Value, wholeNumber } from '../directive-values.ts'
import { type Course, ENDINGS, USAGE_FORMS } from './video-course.ts'

const DAY_MS = 86_400_000
const SECONDS_LIMIT = 1_000_000
const LINES_LIMIT = 100_000
const FAULTS_LIMIT = 1_000_000

const time = wholeNumber(0, DAY_MS)
const seconds = decimal(-SECONDS_LIMIT, SECONDS_LIMIT)
const times = wholeNumber(0, FAULTS_LIMIT)

/** What the directives of a create call say about the course of its task. */
export const COURSE_DIRECTIVES: Readonly<Record<string, (value: Value) => Partial<Course>>> = {
  'unknown-ms': (value) => ({ unknownMs: time(value) }),
  'pending-ms': (value) => ({ pendingMs: time(value) }),
  'running-ms': (value) => ({ runningMs: time(value) }),
  'starts-running'(value) {
    nothing(value)
    return { startsRunning: true, pendingMs: 0 }
  },
  'task-ends': (value) => ({ ends: oneOf(...ENDINGS)(value) }),
  'fail-code': (value) => ({ failCode: text(value) }),
  'fail-message': (value) => ({ failMessage: text(value).replaceAll('_', ' ') }),
  'video-seconds': (value) => ({ videoSeconds: seconds(value) }),
  'usage-sr': (value) => ({ usageSr: wholeNumber(0, LINES_LIMIT)(value) }),
  'usage-form': (value) => ({ usageForm: oneOf(...USAGE_FORMS)(value) }),
  'canceled-seconds': (value) => ({ canceledSeconds: seconds(value) }),
  'url-seconds': (value) => ({ urlSeconds: wholeNumber(0, SECONDS_LIMIT)(value) }),
  'poll-429': (value) => ({ poll429: times(value) }),
  'poll-fails': (value) => ({ pollFails: times(value) }),
  'poll-garbage': (value) => ({ pollGarbage: times(value) }),
  'poll-hangs': (value) => ({ pollHangs: times(value) }),
  'poll-cuts': (value) => ({ pollCuts: times(value) }),
  'cancel-fails': (value) => ({ cancelFails: times(value) }),
  'cancel-hangs': (value) => ({ cancelHangs: times(value) }),
  'cancel-cuts': (value) => ({ cancelCuts: times(value) }),
}
