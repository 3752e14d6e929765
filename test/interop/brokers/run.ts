/**
 * `npm run interop -- brokers [NAME [KILLS]]`: an event sink to real brokers, while the service and the broker are killed in turns. Afterwards
 * the broker must have every event of the service, those of each message in their order, each as the service shows it.
 */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { post, queueTotals } from '../../support/crash-rig.ts'
import { ownAddress } from '../../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../../support/service-process.ts'
import { temporaryFolder } from '../../support/stores.ts'
import { BROKERS, type Broker } from './brokers.ts'

const MESSAGES = 20
const SINK = '/sendwright/v1/event-sinks/broker'
/** Kills come this long after the first message of a round, at most. */
const PAUSE_MAX_MS = 1_500
const LOOK_EVERY_MS = 500
/** Without any event that is sent or any delivery that ends. */
const STILL_MAX_MS = 300_000

export async function runBrokers(names: readonly string[], kills: number): Promise<void> {
  for (const name of names) {
    const broker = BROKERS[name]
    assert.ok(broker, `no broker is named ${name}`)
    console.log(`${name}: ${await tryBroker(broker, kills)}`)
  }
}

async function tryBroker(make: (typeof BROKERS)[string], kills: number): Promise<string> {
  const folder = await temporaryFolder({ after() {} })
  const [host, brokerHost] = [ownAddress(), ownAddress()]
  await mkdir(join(folder, 'broker'))
  const broker = make(join(folder, 'broker'), brokerHost)
  const start = () => {
    const env = {
      SENDWRIGHT_DATA: join(folder, 'data'),
      SENDWRIGHT_SMTP_PORT: '0',
      SENDWRIGHT_DELIVERY: 'capture',
    }
    return startProcess(host, env, { startMaxMs: Number.POSITIVE_INFINITY })
  }
  let service: ServiceProcess | null = null
  try {
    await broker.start()
    await broker.prepare()
    service = await start()
    await call(service, 'PUT', SINK, { ...broker.sink, from: 'oldest' })
    for (let kill = 0; kill < 2 * kills; kill++) {
      const running = service
      const posts: Promise<unknown>[] = Array.from({ length: MESSAGES }, (_, at) =>
        post(running, { to: `user${at}@example.org`, subject: `${kill}.${at}`, text: 'Hi.' }),
      )
      await Promise.race(posts)
      // A kill may come before it is answered.
      if (broker.isPeriodic) posts.push(call(running, 'PUT', SINK, broker.sink).catch(() => {}))
      await sleep(Math.random() * PAUSE_MAX_MS)
      if (kill % 2 === 0) {
        await service.end('SIGKILL')
        await Promise.all(posts)
        service = await start()
      } else {
        await broker.kill()
        await Promise.all(posts)
        await broker.start()
      }
    }
    return await compared(service, broker)
  } finally {
    await service?.end('SIGTERM')
    await broker.kill()
  }
}

type Posted = Record<string, unknown> & { event: string; message?: { headers?: Record<string, string> } }

async function compared(service: ServiceProcess, broker: Broker): Promise<string> {
  const shown = new Map((await allSent(service, broker)).map((event) => [String(event['id']), event]))
  const got = await broker.read()
  const first = new Map<string, string>()
  for (const { id, text } of got) {
    if (!first.has(id)) first.set(id, text)
    assert.equal(text, first.get(id), 'a repeat differs')
  }
  const lost = [...shown.keys()].filter((id) => !first.has(id))
  assert.deepEqual(lost, [], 'lost')
  assert.equal(first.size, shown.size, 'events that nobody knows')
  const ofMessages = new Map<string, string[]>()
  for (const [id, text] of first) {
    const { account: _account, domain: _domain, ...event } = JSON.parse(text) as Posted
    assert.deepEqual(event, shown.get(id))
    const message = String(event.message?.headers?.['message-id'])
    ofMessages.set(message, [...(ofMessages.get(message) ?? []), event.event])
  }
  for (const order of ofMessages.values()) assert.deepEqual(order, ['accepted', 'delivered'])
  return `${shown.size} events of ${ofMessages.size} messages, 0 lost, in order, ${got.length - first.size} came again`
}

/** All events, once the queue is empty and the sink has confirmed as many. */
async function allSent(service: ServiceProcess, broker: Broker): Promise<Record<string, unknown>[]> {
  let before = ''
  let until = 0
  for (;;) {
    const waiting = await queueTotals(service)
    const { sent, behind_seconds: behind, last_error } = await call(service, 'GET', SINK)
    const isQuiet = waiting === 0 && behind === 0
    const events = isQuiet ? await allEvents(service) : []
    if (isQuiet && sent === events.length) return events
    const now = `${waiting} deliveries wait, ${sent} events are sent`
    if (now !== before) until = performance.now() + STILL_MAX_MS
    else if (performance.now() > until) throw new Error(`${now}, and no more for long: ${last_error}`)
    before = now
    if (broker.isPeriodic) await call(service, 'PUT', SINK, broker.sink)
    await sleep(LOOK_EVERY_MS)
  }
}

async function allEvents(service: ServiceProcess): Promise<Record<string, unknown>[]> {
  const all: Record<string, unknown>[] = []
  for (let path = `/v3/${service.domain}/events?ascending=yes&limit=300`; ; ) {
    const { items, paging } = await call(service, 'GET', path)
    if (items.length === 0) return all
    all.push(...items)
    path = new URL(paging.next).pathname
  }
}

// biome-ignore lint/suspicious/noExplicitAny: answers of several operations
async function call(service: ServiceProcess, method: string, path: string, json?: object): Promise<any> {
  const answer = await fetch(service.url + path, {
    method,
    headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
    ...(json && { body: JSON.stringify(json) }),
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  return JSON.parse(text)
}
