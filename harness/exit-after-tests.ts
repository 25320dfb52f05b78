import { after } from 'node:test'
import { endSoon } from './end-soon.ts'
import { isShared } from './lane.ts'

/** Loaded into every test process. A shared one says by itself when its last file is over. */
if (!isShared) after(endSoon)
