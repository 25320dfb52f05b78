import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { ROOT } from '../../harness/root.ts'
import { CHAT, startStage, streamedChat } from '../load/stage.ts'
import { type CpuProfile, flameGraph, sharesOf } from './flame.ts'

/**
 * `node bench/draw/profile.ts [--streams] [--connections 50] [--seconds 8]`: draws where the gateway's time goes under load, into
 * docs/performance/flame-chat.svg or flame-streams.svg.
 */
const { values: flags } = parseArgs({
  options: {
    streams: { type: 'boolean', default: false },
    connections: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '8' },
  },
})
const kind = flags.streams ? 'streams' : 'chat'
const folder = mkdtempSync(path.join(tmpdir(), 'farebox-profile-'))
const stage = await startStage({
  callers: 1_000,
  everyMs: 8,
  env: { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder} --cpu-prof-interval=250` },
})
let [fromUs, toUs] = [0, 0]
try {
  const load = { connections: Number(flags.connections), body: flags.streams ? streamedChat(200) : CHAT }
  await stage.send('ours', { ...load, warmUpMs: 0, measureMs: 15_000 })
  fromUs = nowUs()
  await stage.send('ours', { ...load, warmUpMs: 0, measureMs: 1_000 * Number(flags.seconds) })
  toUs = nowUs()
} finally {
  // The profile is written when the gateway ends.
  await stage.stop()
}
const [file = ''] = readdirSync(folder)
const profile = JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as CpuProfile
const what = flags.streams ? 'streams' : `metered chat completions, ${flags.connections} connections`
const target = path.join(ROOT, `docs/performance/flame-${kind}.svg`)
writeFileSync(target, flameGraph(`Where the gateway’s time goes: ${what}`, profile, fromUs, toUs))
rmSync(folder, { recursive: true, force: true })
console.log(`${target}: ${sharesOf(profile, fromUs, toUs).join(', ')}`)

/** The clock that the profile has, too. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}
