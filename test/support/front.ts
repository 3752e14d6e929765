/** A front before two pods, each one node with a database of its own; the directory is a map that tests change. */
import type { TestContext } from 'node:test'
import pino from 'pino'
import type { Query } from '../../src/front/directory.ts'
import { type Front, startFront } from '../../src/front/front.ts'
import { keyDigest } from '../../src/people/keys/api-keys.ts'
import { readConfig } from '../../src/platform/config/config.ts'
import { createSealer } from '../../src/platform/store/secrets/sealing.ts'
import { ownAddress, startTestService, type TestService } from './service.ts'
import { temporaryFolder } from './stores.ts'

/** `SENDWRIGHT_SECRET` of the front and of its pods. */
export const FRONT_SECRET = 'secret-of-all-processes-0123456789'

export const digestOf = (key: string): string => keyDigest(createSealer(FRONT_SECRET), key)

export const basic = (key: string): string => `Basic ${Buffer.from(`api:${key}`).toString('base64')}`

export interface DirectoryRows {
  /** By `kind value`. */
  entries: Map<string, string>
  pods: { name: string; http: string; smtp: string; hosts?: string }[]
  /** Statements fail. */
  isAway: boolean
  /** Statements so far. */
  asked: number
  query: Query
}

export function directoryRows(): DirectoryRows {
  const rows: DirectoryRows = {
    ...{ entries: new Map(), pods: [], isAway: false, asked: 0 },
    async query(sql, values) {
      rows.asked += 1
      if (rows.isAway) throw new Error('the database is away')
      if (sql.includes('sendwright_pods.pods')) return rows.pods.map((pod) => ({ ...pod }))
      const [kinds, texts] = values as [string[], string[]]
      return kinds.flatMap((kind, at) => {
        const pod = rows.entries.get(`${kind} ${texts[at]}`)
        return pod === undefined ? [] : [{ kind, value: texts[at], pod }]
      })
    },
  }
  return rows
}

export interface TestFront {
  front: Front
  host: string
  url: string
  lines: Record<string, unknown>[]
}

/** A front that stops with the test. */
export async function testFront(
  t: TestContext,
  query: Query | undefined,
  env: Record<string, string> = {},
): Promise<TestFront> {
  const host = ownAddress()
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const config = readConfig({
    ...{
      SENDWRIGHT_ROLES: 'front',
      SENDWRIGHT_SECRET: FRONT_SECRET,
      SENDWRIGHT_DATABASE_URL: 'postgres://none/none',
    },
    ...{ SENDWRIGHT_HOST: host, SENDWRIGHT_PORT: '0', SENDWRIGHT_SMTP_PORT: '0', SENDWRIGHT_HTTPS_PORT: '0' },
    ...{ SENDWRIGHT_FRONT_STATUS: `${host}:0`, SENDWRIGHT_HOSTNAME: 'front.example' },
    SENDWRIGHT_DATA: await temporaryFolder(t),
    ...env,
  })
  const front = await startFront(config, log, query)
  t.after(() => front.stop())
  return { front, host, url: `http://${host}:${front.port}`, lines }
}

export interface TestPod {
  name: string
  key: string
  domain: string
  service: TestService
}

/** Two pods, `one` and `two`, with what the directory says of them. */
export async function testPods(t: TestContext, rows: DirectoryRows): Promise<[TestPod, TestPod]> {
  const start = async (name: string): Promise<TestPod> => {
    const key = `key-of-pod-${name}-0123456789`
    const service = await startTestService(t, {
      ...{ SENDWRIGHT_API_KEY: key, SENDWRIGHT_SECRET: FRONT_SECRET, SENDWRIGHT_SMTP_PORT: '0' },
      ...{ SENDWRIGHT_HTTP_PROXY_PROTOCOL: '127.0.0.1', SENDWRIGHT_SMTP_PROXY_PROTOCOL: '127.0.0.1' },
    })
    const { config, domain, service: running } = service
    rows.entries
      .set(`key ${digestOf(key)}`, name)
      .set(`domain ${domain}`, name)
      .set(`pod ${name}`, name)
    const [http, smtp] = [`${config.host}:${running.port}`, `${config.smtpHost}:${running.smtp.port}`]
    rows.pods.push({ name, http: JSON.stringify([http]), smtp: JSON.stringify([smtp]) })
    return { name, key, domain, service }
  }
  return [await start('one'), await start('two')]
}
