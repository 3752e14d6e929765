/**
 * Mail comes in for routes that store and forward it, while the service is killed at random moments and restarted. The
 * ledger has every mail for which the client got a 250; a mail whose reply was lost is not sent again. Mail is sent out
 * beside it, if wanted.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectSmtp } from '../../src/protocols/smtp/client.ts'
import type { SmtpConnection } from '../../src/protocols/smtp/connection.ts'
import { post, queueTotals } from './crash-rig.ts'
import type { Receiver } from './http-receiver.ts'
import { AUTHORIZATION, type ServiceProcess } from './service-process.ts'
import type { Sink } from './smtp-sink.ts'

export interface IncomingPlan {
  host: string
  start(): Promise<ServiceProcess>
  sink: Sink
  /** Gets each mail as a POST besides; null: nothing does. */
  receiver: Receiver | null
  mails: number
  kills: number
  clients: number
  /** Messages sent out beside them; 0: none. */
  outgoingPerSecond: number
  note(text: string): void
}

export interface IncomingFigures {
  accepted: number
  outgoing: number
  seconds: number
  /** Of these, between a kill and the next start that was ready. */
  downSeconds: number
  /** Of the ledger. */
  notStored: string[]
  notForwarded: string[]
  notPosted: string[]
  lostOutgoing: string[]
  /** With more than one stored message, or forwarded as different deliveries. */
  storedTwice: string[]
  forwardedTwice: string[]
  /** Posted as received more than once. */
  postedTwice: string[]
  /** The same delivery, or the same POST, once more. */
  repeatedForwards: number
  repeatedPosts: number
}

interface Run {
  plan: IncomingPlan
  service: ServiceProcess
  ledger: Set<string>
  outgoing: Set<string>
  next: number
  ended: boolean
  downMs: number
}

const PAUSE_MS = 20
const BODY = Buffer.from(`${'x'.repeat(98)}\r\n`.repeat(20))
const TICK_MS = 20
const IN_FLIGHT_MAX = 64
const DRAIN_MAX_MS = 180_000

export async function runIncoming(plan: IncomingPlan): Promise<IncomingFigures> {
  const run: Run = {
    plan,
    service: await plan.start(),
    ledger: new Set(),
    outgoing: new Set(),
    next: 0,
    ended: false,
    downMs: 0,
  }
  try {
    await createRoute(run)
    const begun = performance.now()
    const outgoing = sendOut(run)
    const clients = Array.from({ length: plan.clients }, () => client(run))
    await killRepeatedly(run)
    await Promise.all(clients)
    run.ended = true
    await outgoing
    const seconds = (performance.now() - begun) / 1000
    await drained(run)
    return { ...(await judge(run)), seconds, downSeconds: run.downMs / 1000 }
  } finally {
    run.ended = true
    await run.service.end('SIGKILL')
  }
}

const call = async ({ service }: Run, path: string, form?: Record<string, string>) => {
  const answer = await fetch(new URL(path, service.url), {
    method: form ? 'POST' : 'GET',
    headers: { authorization: AUTHORIZATION },
    ...(form && { body: new URLSearchParams(form) }),
  })
  assert.equal(answer.status, 200, path)
  return (await answer.json()) as Record<string, unknown>
}

async function createRoute(run: Run): Promise<void> {
  const { receiver } = run.plan
  const to = ['in@forward.example', ...(receiver ? [`${receiver.url}/in`] : [])].join(', ')
  const body = new URLSearchParams({ expression: 'match_recipient("in@")' })
  for (const action of ['store()', `forward("${to}")`]) body.append('action', action)
  const answer = await fetch(`${run.service.url}/v3/routes`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body,
  })
  assert.equal(answer.status, 200, await answer.text())
}

async function client(run: Run): Promise<void> {
  let connection: SmtpConnection | null = null
  while (run.ledger.size < run.plan.mails) {
    try {
      connection ??= await connectSmtp({
        ...{ host: run.plan.host, port: 2525, heloName: 'client.example' },
        ...{ tls: 'none', verify: false },
      })
      await give(run, connection)
    } catch {
      connection?.close()
      connection = null
      await sleep(PAUSE_MS)
    }
  }
  await connection?.quit()
}

async function give(run: Run, connection: SmtpConnection): Promise<void> {
  const id = `<in-${run.next++}@client.example>`
  const { data } = await connection.send({
    returnPath: 'sender@client.example',
    recipients: [`in@${run.service.domain}`],
    message: { headers: ['From: sender@client.example', `Message-Id: ${id}`], body: [BODY] },
    sizeBytes: BODY.length + 100,
    utf8: false,
  })
  if (data?.code !== 250) throw new Error(`refused: ${data?.code ?? 'no recipient accepted'}`)
  run.ledger.add(id)
}

/** At the pace on average: what a restart has delayed or lost is sent after it. */
async function sendOut(run: Run): Promise<void> {
  const { outgoingPerSecond } = run.plan
  const flying = new Set<Promise<void>>()
  const begun = performance.now()
  for (; !run.ended && outgoingPerSecond > 0; await sleep(TICK_MS)) {
    const due = ((performance.now() - begun) / 1000) * outgoingPerSecond
    while (run.outgoing.size + flying.size < due && flying.size < IN_FLIGHT_MAX) {
      const fields = { to: 'user@example.org', subject: 'out', text: 'Hello' }
      const call: Promise<void> = post(run.service, fields)
        .then((answer) => void ('id' in answer && run.outgoing.add(answer.id)))
        .finally(() => flying.delete(call))
      flying.add(call)
    }
  }
  await Promise.all(flying)
}

async function killRepeatedly(run: Run): Promise<void> {
  const { kills, mails, start, note } = run.plan
  for (let kill = 1; kill <= kills; kill++) {
    const due = (kill * mails) / (kills + 1)
    while (run.ledger.size < due) await sleep(1)
    await sleep(Math.random() * 50)
    const killedAt = performance.now()
    await run.service.end('SIGKILL')
    run.service = await start()
    run.downMs += performance.now() - killedAt
    note(`kill ${kill}: ${run.ledger.size} incoming and ${run.outgoing.size} outgoing accepted`)
  }
}

/** Waits for all copies, and for the POSTs of the ledger. */
async function drained({ service, ledger, plan: { receiver } }: Run): Promise<void> {
  const until = performance.now() + DRAIN_MAX_MS
  const isPosted = () => {
    const posted = counted((receiver?.posts ?? []).map(({ raw }) => idIn(raw)))
    return receiver === null || [...ledger].every((id) => posted.has(id))
  }
  while ((await queueTotals(service)) > 0 || !isPosted()) {
    if (performance.now() > until) throw new Error(`not drained after ${DRAIN_MAX_MS} ms`)
    await sleep(100)
  }
}

const idIn = (raw: Buffer): string =>
  /<(?:in-\d+@client\.example|[^<>\s]+@[^<>\s]+)>/.exec(headOf(raw))?.[0] ?? ''

/** The id in the Received field, which each reception of a mail has of its own. */
function receptionOf(raw: Buffer): string {
  const id = / with \w+ id ([\w-]+);/.exec(raw.subarray(0, 8192).toString('latin1'))?.[1]
  assert.ok(id, 'a post has the Received field of the service')
  return id
}

/** From the Message-Id on. */
function headOf(raw: Buffer): string {
  const head = raw.subarray(0, 8192).toString('latin1')
  const at = head.search(/^message-id:|name="message-id"/im)
  return at < 0 ? '' : head.slice(at)
}

function counted(texts: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1)
  return counts
}

async function judge(run: Run): Promise<Omit<IncomingFigures, 'seconds' | 'downSeconds'>> {
  const { sink, receiver } = run.plan
  const copies = sink.messages.map(({ envelope, raw }) => ({ id: idIn(raw), token: envelope.from }))
  const received = counted(copies.map(({ id }) => id))
  const forwards = copies.filter(({ id }) => id.startsWith('<in-'))
  const deliveries = counted(new Map(forwards.map(({ id, token }) => [token, id])).values())
  const posts = counted((receiver?.posts ?? []).map(({ raw }) => idIn(raw)))
  const receptions = counted(
    new Map((receiver?.posts ?? []).map(({ raw }) => [receptionOf(raw), idIn(raw)])).values(),
  )
  const stored = counted(await storedIds(run))
  const missing = (counts: Map<string, number>, ids: Iterable<string>) =>
    [...ids].filter((id) => !counts.has(id))
  const twice = (counts: Map<string, number>) => [...counts].filter(([, n]) => n > 1).map(([id]) => id)
  return {
    accepted: run.ledger.size,
    outgoing: run.outgoing.size,
    notStored: missing(stored, run.ledger),
    notForwarded: missing(received, run.ledger),
    notPosted: receiver ? missing(posts, run.ledger) : [],
    lostOutgoing: missing(received, run.outgoing),
    storedTwice: twice(stored),
    forwardedTwice: twice(deliveries),
    postedTwice: twice(receptions),
    repeatedForwards: forwards.length - new Set(forwards.map(({ token }) => token)).size,
    repeatedPosts: [...posts.values()].reduce((sum, count) => sum + count - 1, 0),
  }
}

/** Message-Ids of all stored events. */
async function storedIds(run: Run): Promise<string[]> {
  const ids: string[] = []
  let path = `/v3/${run.service.domain}/events?event=stored&limit=300&ascending=yes`
  for (;;) {
    const { items, paging } = (await call(run, path)) as unknown as EventPage
    if (items.length === 0) return ids
    ids.push(...items.map(({ message }) => `<${message.headers['message-id']}>`))
    path = new URL(paging.next).pathname
  }
}

interface EventPage {
  items: { message: { headers: { 'message-id': string } } }[]
  paging: { next: string }
}
