/**
 * Runs a real client or application against the service: `npm run interop -- swaks`, `npm run interop -- anymail`.
 *
 * Clients send (sending/run.ts); `all` runs every one of them. Official clients make their calls (official/run.ts). Applications take received mail:
 *
 * 1. The application and the service are started, each as a process of its own.
 * 2. Every sample is given to the service by SMTP. What it posts is caught, and passed to the application as it is.
 * 3. The application must accept it, and must have read what the sample says.
 *
 * With `--record` the posts and what was read become `recorded/<application>.json`, which recorded.test.ts holds the
 * service to where the application is not installed.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createReceiver, type ReceivedPost } from '../support/http-receiver.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { APPLICATIONS, type Application } from './applications.ts'
import { runEgress } from './balancer/egress.ts'
import { runBalancer } from './balancer/run.ts'
import { runBind } from './bind/run.ts'
import { runBrokers } from './brokers/run.ts'
import { runClickHouse } from './clickhouse/run.ts'
import { runHelm } from './helm.ts'
import { LIBRARIES } from './official/libraries.ts'
import { runLibrary } from './official/run.ts'
import { fieldsOf, makeRoutes, post, SETTINGS, startDns } from './posting.ts'
import type { Recorded } from './recorded.ts'
import { SAMPLES } from './samples.ts'
import { CLIENTS, type Client } from './sending/clients.ts'
import { runClients } from './sending/run.ts'

const START_MAX_MS = 60_000
const READ_MAX_MS = 10_000
const USAGE = `usage: npm run interop -- ${['all', ...Object.keys(CLIENTS)].join('|')}
  or: npm run interop -- haproxy|egress|bind|clickhouse
  or: npm run interop -- brokers [nats|rabbitmq|kafka|s3 [KILLS]]
  or: npm run interop -- helm [--record]
  or: npm run interop -- ${[...Object.keys(APPLICATIONS), ...Object.keys(LIBRARIES)].join('|')} [--record]`

async function run(name: string, record: boolean): Promise<void> {
  const application = APPLICATIONS[name] as Application
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-interop-'))
  const host = ownAddress()
  const receiver = await createReceiver({ host: ownAddress() })
  const dns = await startDns()
  const service = await startProcess(host, {
    ...SETTINGS,
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_DATA: join(folder, 'service'),
  })
  let running: Running | null = null
  try {
    const posting = {
      ...{ url: service.url, authorization: AUTHORIZATION, domain: service.domain, receiver },
      smtp: { host, port: 2525 },
    }
    const signingKey = await makeRoutes(posting, application.paths)
    running = await startApplication(application, host, signingKey, join(folder, 'application'))
    const recorded: Recorded = { versions: running.versions, domain: service.domain, signingKey, posts: [] }
    for (const sample of SAMPLES.filter(({ to }) => application.paths[to] !== undefined)) {
      const received = await post(posting, sample)
      const { status, read } = await running.give(received)
      assert.ok(status >= 200 && status < 300, `"${sample.name}": ${name} responded ${status}`)
      assert.deepEqual(application.found(read), application.expected(sample), sample.name)
      const fields = await fieldsOf(received)
      const isRaw = fields.some(([field]) => field === 'body-mime')
      assert.equal(isRaw, sample.to === 'raw', `"${sample.name}" has the wrong form`)
      recorded.posts.push({ sample: sample.name, path: received.path, fields, status, read })
      console.log(`accepted and read: ${sample.name}`)
    }
    for (const [what, tampered] of tamperings(receiver.posts[0] as ReceivedPost)) {
      const { status } = await running.refused(tampered)
      assert.ok(status >= 400, `${what}: ${name} responded ${status}`)
      console.log(`refused with ${status}: ${what}`)
    }
    console.log(`${name}: ${JSON.stringify(running.versions)}`)
    if (record) await writeFile(recordedFile(name), `${JSON.stringify(recorded, null, 2)}\n`)
  } finally {
    running?.child.kill('SIGTERM')
    await service.end('SIGTERM')
    await receiver.close()
    await dns.close()
    await rm(folder, { recursive: true, force: true })
  }
}

const recordedFile = (name: string) => join(import.meta.dirname, 'recorded', `${name}.json`)

/** Posts that must not be accepted, so that the acceptance of the others means something. */
function* tamperings(accepted: ReceivedPost): Generator<[what: string, post: ReceivedPost]> {
  const text = accepted.raw.toString('latin1')
  const other = (digit: string) => (digit === '0' ? '1' : '0')
  for (const field of ['signature', 'token', 'timestamp']) {
    const last = new RegExp(`(name="${field}"\r\n\r\n\\S+)(\\S)(?=\r\n)`)
    const changed = text.replace(last, (_whole, before: string, digit: string) => before + other(digit))
    yield [`a changed ${field}`, { ...accepted, raw: Buffer.from(changed, 'latin1') }]
  }
}

interface Running {
  child: ChildProcess
  versions: Record<string, string>
  /** Passes a post on; resolves with the response, and what the application read. */
  give(received: ReceivedPost): Promise<{ status: number; read: Record<string, unknown> }>
  refused(received: ReceivedPost): Promise<{ status: number }>
}

async function startApplication(
  { command }: Application,
  host: string,
  signingKey: string,
  folder: string,
): Promise<Running> {
  await mkdir(folder)
  const [program = '', ...args] = command
  const child = spawn(program, [...args, host, signingKey, folder], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (timeoutMs: number): Promise<Record<string, unknown>> => {
    const line = await Promise.race([
      lines.next(),
      new Promise<never>((_resolve, reject) => {
        setTimeout(
          () => reject(new Error(`the application printed nothing in ${timeoutMs} ms`)),
          timeoutMs,
        ).unref()
      }),
    ])
    if (line.done) throw new Error('the application has ended')
    return JSON.parse(line.value) as Record<string, unknown>
  }
  const { versions, port } = await next(START_MAX_MS)
  const pass = ({ method, path, headers, raw }: ReceivedPost) =>
    fetch(`http://${host}:${port}${path}`, {
      method,
      headers: { 'content-type': headers['content-type'] ?? '', 'user-agent': headers['user-agent'] ?? '' },
      body: new Uint8Array(raw),
      redirect: 'manual',
    })
  return {
    child,
    versions: versions as Record<string, string>,
    async give(received) {
      const { status } = await pass(received)
      return { status, read: status < 300 ? await next(READ_MAX_MS) : {} }
    },
    refused: pass,
  }
}

/** The clients that can run here: those from npm and Debian, and others if their code is named. */
function atHand(): string[] {
  const found = ({ needs }: Client) => needs === undefined || process.env[needs] !== undefined
  return Object.keys(CLIENTS).filter((name) => found(CLIENTS[name] as Client))
}

const [name = '', flag, count] = process.argv.slice(2)
if (name === 'haproxy') await runBalancer()
else if (name === 'egress') await runEgress()
else if (name === 'bind') await runBind()
else if (name === 'clickhouse') await runClickHouse()
else if (name === 'brokers') await runBrokers(flag ? [flag] : ['nats', 'rabbitmq'], Number(count ?? 3))
else if (name === 'helm') await runHelm(flag === '--record')
else if (name === 'all') await runClients(atHand())
else if (Object.hasOwn(CLIENTS, name)) await runClients([name])
else if (Object.hasOwn(LIBRARIES, name)) await runLibrary(name, flag === '--record')
else if (Object.hasOwn(APPLICATIONS, name)) await run(name, flag === '--record')
else {
  console.error(USAGE)
  process.exitCode = name === '--help' ? 0 : 2
}
