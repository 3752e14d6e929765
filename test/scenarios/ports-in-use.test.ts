// Slow: it starts and ends whole processes, again and again.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { ownAddress } from '../support/service.ts'
import { assertPlain, refusedStart } from '../support/starts.ts'
import { temporaryFolder } from '../support/stores.ts'

const PORTS: Record<string, [port: number, sentence: string]> = {
  SENDWRIGHT_PORT: [8081, 'HTTP, as SENDWRIGHT_HOST and SENDWRIGHT_PORT say'],
  SENDWRIGHT_HTTPS_PORT: [8443, 'HTTPS, as SENDWRIGHT_HOST and SENDWRIGHT_HTTPS_PORT say'],
  SENDWRIGHT_SMTP_PORT: [2526, 'SMTP, as SENDWRIGHT_SMTP_HOST and SENDWRIGHT_SMTP_PORT say'],
  SENDWRIGHT_SMTPS_PORT: [4650, 'SMTP, as SENDWRIGHT_SMTP_HOST and SENDWRIGHT_SMTPS_PORT say'],
}

test('a start whose port is in use says so in one sentence with the settings to change', async (t) => {
  const host = ownAddress()
  const ports = Object.entries(PORTS)
  const env = {
    ...Object.fromEntries(ports.map(([name, [port]]) => [name, String(port)])),
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_HOSTNAME: 'mail.test.example',
  }
  for (const [, [port, sentence]] of ports) {
    const taken = createServer().listen(port, host)
    await once(taken, 'listening')
    const refused = await refusedStart({ ...env, SENDWRIGHT_DATA: await temporaryFolder(t) })
    taken.close()
    assertPlain(refused, new RegExp(`Cannot listen for ${sentence}: listen EADDRINUSE.* ${host}:${port}`))
  }
})
