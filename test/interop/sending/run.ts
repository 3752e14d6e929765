/** Clients send through a service, which delivers to a server that keeps what it gets. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthority } from '../../support/certificates.ts'
import { ownAddress, TEST_KEY } from '../../support/service.ts'
import { AUTHORIZATION, startProcess } from '../../support/service-process.ts'
import { createSink } from '../../support/smtp-sink.ts'
import { CLIENTS, type Client } from './clients.ts'
import { assertArrived, type Reach } from './mail.ts'

const HTTPS_PORT = 8443
const PASSWORD = 'long enough for a login'

/** Lets each of these clients send once, through one service. @throws Error when a mail does not arrive as sent */
export async function runClients(names: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-interop-'))
  const host = ownAddress()
  const sink = await createSink({ host: ownAddress() })
  const authority = createAuthority()
  const { cert, key } = authority.issue([host])
  const at = (name: string) => join(folder, name)
  for (const [name, pem] of Object.entries({ authority: authority.cert, cert, key }))
    await writeFile(at(`${name}.pem`), pem)
  const service = await startProcess(host, {
    SENDWRIGHT_DATA: at('data'),
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_HTTPS_PORT: `${HTTPS_PORT}`,
    SENDWRIGHT_TLS_CERT: at('cert.pem'),
    SENDWRIGHT_TLS_KEY: at('key.pem'),
    SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'no',
  })
  try {
    const reach: Reach = {
      ...{ url: service.url, https: `${host}:${HTTPS_PORT}`, authorityFile: at('authority.pem') },
      ...{ key: TEST_KEY, domain: service.domain },
      smtp: { host, port: 2525, user: `app@${service.domain}`, password: PASSWORD },
    }
    await createLogin(reach)
    for (const name of names) {
      const client = CLIENTS[name] as Client
      sink.messages.length = 0
      await mkdir(at(name))
      const started = performance.now()
      await client.send(reach, at(name))
      const tookMs = Math.round(performance.now() - started)
      await assertArrived(reach, sink)
      console.log(`${name}: sent and delivered as it was, ${tookMs} ms (${await client.version()})`)
    }
  } finally {
    await service.end('SIGTERM')
    await sink.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function createLogin({ url, domain }: Reach): Promise<void> {
  const answer = await fetch(`${url}/v3/domains/${domain}/credentials`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams({ login: 'app', password: PASSWORD }),
  })
  assert.equal(answer.status, 200, await answer.text())
}
