import type { SandboxProcess } from '../../../harness/sandbox.ts'
import type { ShownPoll, ShownTask } from '../../../sandbox/src/upstreams/video-tasks.ts'

/** What the upstream itself knows of tasks, whatever we were told. */
type Sandbox = Pick<SandboxProcess, 'url'>

/** All that it has made, in the order of their making. */
export async function videoTasks({ url }: Sandbox): Promise<readonly ShownTask[]> {
  const all: ShownTask[] = []
  for (let next = 0; ; ) {
    const page = await read(`${url}/control/video/tasks?since=${next}`)
    all.push(...page.tasks)
    if (page.tasks.length === 0) return all
    next = page.next
  }
}

/** By the id of our call that made them. */
export async function videoTasksByCall(sandbox: Sandbox): Promise<ReadonlyMap<string, ShownTask>> {
  return new Map((await videoTasks(sandbox)).map((task) => [task.request_id_of_create ?? '', task]))
}

/** Every question about a task that it was asked, in the order of arrival. */
export async function videoPolls({ url }: Sandbox): Promise<readonly ShownPoll[]> {
  const all: ShownPoll[] = []
  for (let next = 0; ; ) {
    const page = await read(`${url}/control/video/polls?since=${next}`)
    all.push(...page.polls)
    if (page.polls.length === 0) return all
    next = page.next
  }
}

export async function videoCounts({ url }: Sandbox): Promise<{ readonly most_polls_in_a_second: number }> {
  return read(`${url}/control/video`)
}

async function read(address: string) {
  return JSON.parse(await (await fetch(address)).text())
}

/** The most that went on at once, by when each began and ended. */
export function mostAtOnce(spans: readonly { readonly fromMs: number; readonly toMs: number }[]): number {
  const steps = spans.flatMap(({ fromMs, toMs }) => [
    { atMs: fromMs, step: 1 },
    { atMs: toMs, step: -1 },
  ])
  let now = 0
  let most = 0
  // What ends in the millisecond in which another begins has ended before.
  for (const { step } of steps.toSorted((one, other) => one.atMs - other.atMs || one.step - other.step)) {
    now += step
    most = Math.max(most, now)
  }
  return most
}
