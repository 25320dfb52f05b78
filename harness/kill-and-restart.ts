import { setTimeout as delay } from 'node:timers/promises'
import type { Gateway } from './gateways.ts'

type Kills = {
  /** Which of them is next: from the least to the most. */
  readonly random: { readonly between: (least: number, most: number) => number }
  readonly pauseMs: number
  readonly isOver: () => boolean
}

/** Kills one gateway after the other, never the last that lives, and starts each again in its place. How many it has killed. */
export async function killAndRestart(team: Gateway[], { random, pauseMs, isOver }: Kills): Promise<number> {
  const returns: Promise<void>[] = []
  while (!isOver()) {
    await delay(pauseMs)
    const living = team.filter((gateway) => !gateway.hasExited())
    const victim = living[random.between(0, living.length - 1)]
    if (victim === undefined || living.length < 2 || isOver()) continue
    await victim.kill()
    const comeBack = async () => {
      team[team.indexOf(victim)] = await victim.restart()
    }
    returns.push(comeBack())
  }
  await Promise.all(returns)
  return returns.length
}
