import { after } from 'node:test'
import { endSoon } from './end-soon.ts'
import { isShared } from './lane.ts'
import { noteCpu } from './lane-cpu.ts'

/** Loaded into every test process. A shared one says by itself when its last file is over. */
if (!isShared) after(endSoon)
noteCpu(process.env.HARNESS_QUEUE)
