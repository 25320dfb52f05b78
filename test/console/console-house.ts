import { buildIslands } from '../../harness/build-islands.ts'
import { freePort } from '../../harness/free-port.ts'
import { type House, startHouse } from '../account/house.ts'

/** The whole service, with the script of the console's pages, for people who sign up and are given test money. */
export async function startConsole(databaseUrl: string): Promise<House & { readonly baseUrl: string }> {
  await buildIslands()
  const at = `127.0.0.1:${await freePort()}`
  const house = await startHouse(databaseUrl, {
    env: {
      FAREBOX_LISTEN_GATEWAY: at,
      FAREBOX_HTTP_PUBLIC_URL: `http://${at}`,
      FAREBOX_PEOPLE_SIGN_UP: 'open',
      FAREBOX_PEOPLE_TEST_CREDIT: '5',
    },
  })
  return { ...house, baseUrl: `http://${at}` }
}
