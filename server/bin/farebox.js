#!/usr/bin/env node
import { existsSync } from 'node:fs'

// The built program where there is one, else the sources as they are.
const built = new URL('../dist/main.js', import.meta.url)
await import(existsSync(built) ? built.href : new URL('../src/main.ts', import.meta.url).href)
