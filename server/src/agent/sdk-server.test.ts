import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { queryObjects } from 'node:v8'
import { Server } from '@modelcontextprotocol/server'
import type { AgentRequest } from '../http/agent-routes.ts'
import { createSdkServer } from './sdk-server.ts'

const serverInfo = { name: 'farebox', title: 'Farebox', version: '0.1.0' }
const answerWhole = createSdkServer({
  callTool: () => Promise.reject(new Error('no tool is called')),
  serverInfo,
  instructions: '',
})
const headers = {
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
  'mcp-protocol-version': '2025-11-25',
}
const request = { id: '1', caller: { credentialId: 'c' }, method: 'POST', host: 'localhost', headers }
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'many', version: '1' } },
}
const open = () => answerWhole(request as unknown as AgentRequest, initialize)

describe('the servers that the library makes', () => {
  it('are gone when their messages have been answered, however many there were', async () => {
    const kept: Server[] = [new Server(serverInfo, { capabilities: {} })]
    // Counting collects first what nobody holds; one that is held is seen.
    assert.equal(queryObjects(Server, { format: 'count' }) >= kept.length, true)
    const before = queryObjects(Server, { format: 'count' })
    for (let opened = 0; opened < 200; opened += 1) assert.equal((await open()).answer.status, 200)
    await new Promise((resolve) => setImmediate(resolve))
    const more = queryObjects(Server, { format: 'count' }) - before
    assert.ok(more < 10, `${more} of 200 are still there`)
    assert.equal(kept.length, 1)
  })
})
