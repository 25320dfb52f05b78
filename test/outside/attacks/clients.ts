import assert from 'node:assert/strict'
import { ask } from '../../acceptance/installation.ts'
import { CALLBACK, decide as decideAtPlatform, LINKS, startLink } from '../../acceptance/links/linking.ts'
import { type Attack, newcomer, newKey } from './world.ts'

export const CLIENT_ATTACKS: readonly Attack[] = [
  [
    'a browser links nothing unasked, whatever loads the callback in it: a page, a picture, a frame or a script',
    async (world) => {
      const owner = await newcomer(world)
      const loads: Readonly<Record<string, Readonly<Record<string, string>>>> = {
        page: { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' },
        picture: {
          accept: 'image/avif,image/webp,image/svg+xml,image/*,*/*;q=0.8',
          'sec-fetch-dest': 'image',
          'sec-fetch-mode': 'no-cors',
          'sec-fetch-site': 'cross-site',
        },
        frame: {
          accept: 'text/html,*/*;q=0.8',
          'sec-fetch-dest': 'iframe',
          'sec-fetch-mode': 'navigate',
          'sec-fetch-site': 'cross-site',
        },
        script: {
          accept: '*/*',
          'sec-fetch-dest': 'script',
          'sec-fetch-mode': 'no-cors',
          'sec-fetch-site': 'cross-site',
        },
        fetched: {
          accept: '*/*',
          'sec-fetch-dest': 'empty',
          'sec-fetch-mode': 'no-cors',
          'sec-fetch-site': 'cross-site',
        },
        'fetched as JSON': {
          accept: 'application/json',
          'sec-fetch-dest': 'empty',
          'sec-fetch-mode': 'cors',
          'sec-fetch-site': 'cross-site',
          origin: 'https://evil.example',
        },
        'an older browser': {
          accept: '*/*',
          'user-agent':
            'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605.1.15 Version/15.6 Safari/605.1.15',
          referer: 'https://evil.example/',
        },
      }
      const stored: string[] = []
      for (const [what, headers] of Object.entries(loads)) {
        const { secret } = await newKey(owner, 'test')
        const { json } = await startLink(world.callsUrl, secret)
        const back = await decideAtPlatform(String(json.auth_url))
        assert.ok(back.includes(CALLBACK))
        await (await fetch(back, { headers, redirect: 'manual' })).text()
        const links = await ask(world.callsUrl, secret, LINKS)
        if (JSON.stringify(links.json.data) !== '[]') stored.push(what)
      }
      assert.deepEqual(stored, [])
    },
  ],
]
