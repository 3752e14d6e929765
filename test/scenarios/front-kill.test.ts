// By name: it kills processes of the service under load.
/** A front before two nodes of one pod, which are killed in turn while clients send over HTTP and SMTP. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import Mailgun from 'mailgun.js'
import pg from 'pg'
import { basic, type TestFront, testFront } from '../support/front.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { type ServiceProcess, startProcess } from '../support/service-process.ts'
import { Dialogue, plainLogin } from '../support/smtp-dialogue.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const SECRET = 'secret-of-all-processes-0123456789'
const KEY = 'key-of-the-pod-a-0123456789'
const PASSWORD = 'long enough'
const WAYS = ['http', 'smtp'] as const
const CLIENTS_PER_WAY = 2
/** Accepted over each way before, between and after the kills. */
const SHARE = 15

type Way = (typeof WAYS)[number]

/** What clients were told. */
class Ledger {
  /** Subjects. */
  readonly accepted: Record<Way, string[]> = { http: [], smtp: [] }
  readonly refusals: Record<Way, string[]> = { http: [], smtp: [] }
  isOver = false
  #wake = Promise.withResolvers<void>()
  #sent = 0

  nextSubject = (way: Way) => `${way}-${++this.#sent}-of-the-test`

  accept(way: Way, subject: string): void {
    this.accepted[way].push(subject)
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }

  /** Resolves when so many more are accepted over each way. */
  async more(count: number): Promise<void> {
    const wanted = WAYS.map((way) => this.accepted[way].length + count)
    while (WAYS.some((way, at) => this.accepted[way].length < Number(wanted[at]))) await this.#wake.promise
  }
}

async function startNodes(t: TestContext, sink: { host: string; port: number }) {
  const { url, drop } = await createTestDatabase()
  const database = new pg.Client({ connectionString: url })
  await database.connect()
  t.after(async () => {
    await database.end()
    await drop()
  })
  /** A node takes calls of the front only, so its entry in the directory says that it is ready. */
  const start = async (host: string): Promise<ServiceProcess> => {
    const before = await startedAt(host)
    const env = {
      SENDWRIGHT_DATA: await temporaryFolder(t),
      ...{ SENDWRIGHT_DATABASE_URL: url, SENDWRIGHT_POD: 'a', SENDWRIGHT_SECRET: SECRET },
      ...{ SENDWRIGHT_API_KEY: KEY, SENDWRIGHT_SANDBOX_RECIPIENTS: '*' },
      ...{ SENDWRIGHT_HTTP_PROXY_PROTOCOL: '127.0.0.1', SENDWRIGHT_SMTP_PROXY_PROTOCOL: '127.0.0.1' },
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    }
    const isReady = async () => (await startedAt(host)).some((id) => !before.includes(id))
    const options = { domain: 'unknown', isReady, startMaxMs: Number.POSITIVE_INFINITY }
    const node = await startProcess(host, env, options)
    t.after(() => node.end('SIGKILL'))
    return node
  }
  /** Ids of the node's processes so far; none while there is no directory. */
  const startedAt = async (host: string): Promise<string[]> => {
    const there = await database.query("SELECT to_regclass('sendwright_pods.nodes') IS NOT NULL AS is")
    if (!there.rows[0].is) return []
    const { rows } = await database.query('SELECT id FROM sendwright_pods.nodes WHERE http = $1', [
      `${host}:8080`,
    ])
    return rows.map(({ id }) => String(id))
  }
  return { url, start }
}

/** A client of the public library; one call after another. */
async function sendByHttp({ url }: TestFront, domain: string, ledger: Ledger): Promise<void> {
  const mailgun = new Mailgun(FormData).client({ username: 'api', key: KEY, url })
  while (!ledger.isOver) {
    const subject = ledger.nextSubject('http')
    const mail = { from: `a@${domain}`, to: ['alice@example.org'], subject, text: 'Hi.' }
    await mailgun.messages.create(domain, mail).then(
      ({ status }) => {
        assert.equal(status, 200)
        ledger.accept('http', subject)
      },
      (error: { status?: number; message: string }) => void ledger.refusals.http.push(`${error.status}`),
    )
  }
}

/** Sessions of a raw client, each as long as it lasts. */
async function sendBySmtp({ front, host }: TestFront, domain: string, ledger: Ledger): Promise<void> {
  const user = `app@${domain}`
  while (!ledger.isOver) {
    const dialogue = await Dialogue.open({ host, port: front.smtp.port })
    const fault = await session(dialogue)
      .catch((error: Error) => error.message)
      .finally(() => dialogue.destroy())
    if (fault !== null) ledger.refusals.smtp.push(fault)
  }

  /** The reply that ended it, "closed" for none; null: the test is over. */
  async function session(dialogue: Dialogue): Promise<string | null> {
    await dialogue.reply()
    await dialogue.say('EHLO client.example')
    await dialogue.say('STARTTLS')
    await dialogue.secure()
    await dialogue.say('EHLO client.example')
    const login = await dialogue.say(`AUTH PLAIN ${plainLogin(user, PASSWORD)}`)
    if (!login?.startsWith('235 ')) return login ?? 'closed'
    while (!ledger.isOver) {
      const subject = ledger.nextSubject('smtp')
      const lines = [`MAIL FROM:<${user}>`, 'RCPT TO:<alice@example.org>', 'DATA']
      for (const line of [...lines, `Subject: ${subject}\r\nFrom: ${user}\r\n\r\nHi.\r\n.`]) {
        const reply = await dialogue.say(line)
        if (!/^[23]/.test(reply ?? '')) return reply ?? 'closed'
      }
      ledger.accept('smtp', subject)
    }
    return null
  }
}

test('kill -9 of a node behind a front: what was accepted arrives, and clients go on with the other node', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const { url, start } = await startNodes(t, sink)
  const hosts = [ownAddress(), ownAddress()] as const
  const nodes = [await start(hosts[0]), await start(hosts[1])]
  const front = await testFront(t, undefined, { SENDWRIGHT_DATABASE_URL: url, SENDWRIGHT_SECRET: SECRET })
  const headers = { authorization: basic(KEY) }
  const domain = await eventually('a node of the pod', async () => {
    const answer = await fetch(`${front.url}/v4/domains`, { headers })
    return answer.ok && ((await answer.json()) as { items: { name: string }[] }).items[0]?.name
  })
  const made = await fetch(`${front.url}/v3/domains/${domain}/credentials`, {
    ...{ method: 'POST', headers, body: new URLSearchParams({ login: 'app', password: PASSWORD }) },
  })
  assert.equal(made.status, 200, await made.text())

  const ledger = new Ledger()
  const clients = Array.from({ length: CLIENTS_PER_WAY }, () => [
    sendByHttp(front, domain, ledger),
    sendBySmtp(front, domain, ledger),
  ]).flat()
  // A client that fails would be awaited for ever.
  const sending = Promise.all(clients)
  const more = () => Promise.race([ledger.more(SHARE), sending])
  try {
    for (const [at, host] of hosts.entries()) {
      await more()
      await nodes[at]?.end('SIGKILL')
      // Only the other one is left.
      await more()
      nodes[at] = await start(host)
    }
    await more()
  } finally {
    ledger.isOver = true
    await sending
  }

  const waiting = () => {
    const texts = sink.messages.map(({ raw }) => raw.toString('latin1'))
    const arrived = new Set(texts.map((text) => /^subject: *(\S+)/im.exec(text)?.[1]))
    return WAYS.flatMap((way) => ledger.accepted[way]).filter((subject) => !arrived.has(subject))
  }
  while (waiting().length > 0) await sink.waitFor(sink.messages.length + 1)
  t.diagnostic(`accepted ${WAYS.map((way) => ledger.accepted[way].length).join(' and ')}`)
  t.diagnostic(`refused ${JSON.stringify(ledger.refusals)}`)
  // No node has the connection, or it is gone in the middle.
  for (const status of ledger.refusals.http) assert.match(status, /^50[234]$/)
  for (const reply of ledger.refusals.smtp)
    assert.match(reply, /^(?:closed$|closed in the handshake$|421 |45[14] )/)
})
