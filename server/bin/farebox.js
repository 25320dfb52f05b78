#!/usr/bin/env node
import './require-node.js'
import { existsSync } from 'node:fs'

// A checkout runs its sources as they are; what is shipped without them runs the bundle.
const sources = new URL('../src/main.ts', import.meta.url)
await import(existsSync(sources) ? sources.href : new URL('../dist/main.js', import.meta.url).href)
