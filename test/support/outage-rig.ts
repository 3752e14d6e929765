/**
 * Clients of every kind that go on beside an outage of the database: posts over HTTP, submission by SMTP, and mail that
 * comes in for a route. Each answer is recorded with its times; each accepted message is in a ledger.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { call } from './nodes.ts'
import { AUTHORIZATION, type ServiceProcess } from './service-process.ts'
import { Dialogue, plainLogin } from './smtp-dialogue.ts'

export type Kind = 'HTTP' | 'submission' | 'incoming'

export interface Answer {
  kind: Kind
  node: number
  /** `200`, `503 Retry-After`, `451 4.3.0 Try again later`, `closed`. */
  text: string
  accepted: boolean
  /** On `performance.now`. */
  begunAt: number
  endedAt: number
}

export interface OutageClients {
  answers: Answer[]
  /** Message-Ids with brackets. */
  outgoing: Set<string>
  incoming: Set<string>
  /** Nothing is under way until `go`. */
  pause(): Promise<void>
  go(): void
  /** As many clients for a further node. */
  add(node: ServiceProcess): void
  stop(): Promise<void>
}

const PASSWORD = 'correct-horse-battery'
const ROUTE = 'in'
/** What nodes need so that mail for the sandbox domain comes in. */
export const INCOMING_ENV = { SENDWRIGHT_SANDBOX_RECIPIENTS: '*', SENDWRIGHT_DNS: '127.0.0.1:9' }

const KINDS: readonly Kind[] = ['HTTP', 'submission', 'incoming']

/** `each`: clients of each of the `kinds` for each node; every one sends a message, then waits for `pauseMs`. */
export async function startClients(
  given: readonly ServiceProcess[],
  { each, pauseMs, kinds = KINDS }: { each: number; pauseMs: number; kinds?: readonly Kind[] },
): Promise<OutageClients> {
  const nodes = [...given]
  const [first] = nodes
  assert.ok(first)
  await call(first, 'PUT', `/v3/domains/${first.domain}/credentials/postmaster`, { password: PASSWORD })
  if (kinds.includes('incoming')) {
    const expression = `match_recipient("${ROUTE}@${first.domain}")`
    await call(first, 'POST', '/v3/routes', { expression, action: 'store()' })
  }
  const answers: Answer[] = []
  const ledgers = { outgoing: new Set<string>(), incoming: new Set<string>() }
  let stopped = false
  let gate = Promise.withResolvers<void>()
  gate.resolve()
  let underWay = 0
  let next = 0

  async function client(kind: Kind, node: number): Promise<void> {
    const service = nodes[node] as ServiceProcess
    const send = kind === 'HTTP' ? httpSender(service) : smtpSender(service, kind)
    for (; ; await sleep(pauseMs)) {
      await gate.promise
      if (stopped) return send.end()
      underWay++
      const begunAt = performance.now()
      const { text, id } = await send.send(++next)
      answers.push({ kind, node, text, accepted: id !== null, begunAt, endedAt: performance.now() })
      if (id !== null) ledgers[kind === 'incoming' ? 'incoming' : 'outgoing'].add(id)
      underWay--
    }
  }

  const clientsOf = (node: number) =>
    kinds.flatMap((kind) => Array.from({ length: each }, () => client(kind, node)))
  const clients = nodes.flatMap((_, node) => clientsOf(node))
  return {
    answers,
    ...ledgers,
    async pause() {
      gate = Promise.withResolvers()
      while (underWay > 0) await sleep(10)
    },
    go: () => gate.resolve(),
    add(node) {
      clients.push(...clientsOf(nodes.push(node) - 1))
    },
    async stop() {
      stopped = true
      gate.resolve()
      await Promise.all(clients)
    },
  }
}

interface Sender {
  send(number: number): Promise<{ text: string; id: string | null }>
  end(): void
}

function httpSender({ url, domain }: ServiceProcess): Sender {
  return {
    async send(number) {
      const form = { from: `a@${domain}`, to: `http${number}@example.org`, subject: 'outage', text: 'Hi.' }
      const answer = await fetch(`${url}/v3/${domain}/messages`, {
        method: 'POST',
        headers: { authorization: AUTHORIZATION },
        body: new URLSearchParams(form),
      }).catch(() => null)
      if (answer === null) return { text: 'closed', id: null }
      const retry = /^\d+$/.test(answer.headers.get('retry-after') ?? '') ? ' Retry-After' : ''
      const body = (await answer.json().catch(() => null)) as { id?: string } | null
      const id = answer.status === 200 ? (body?.id ?? null) : null
      return { text: `${answer.status}${retry}`, id }
    },
    end() {},
  }
}

function smtpSender({ url, domain }: ServiceProcess, kind: Kind): Sender {
  const host = new URL(url).hostname
  let dialogue: Dialogue | null = null

  /** The first reply that is not the expected one; null: all were. */
  async function dialogueOf(lines: readonly [line: string, expected: string][]): Promise<string | null> {
    for (const [line, expected] of lines) {
      const reply = (await dialogue?.say(line)) ?? 'closed'
      if (!reply.startsWith(expected)) return reply
    }
    return null
  }

  async function open(): Promise<string | null> {
    dialogue = await Dialogue.open({ host, port: 2525 }).catch(() => null)
    const greeting = (await dialogue?.reply()) ?? 'closed'
    if (!greeting.startsWith('220')) return greeting
    const login = plainLogin(`postmaster@${domain}`, PASSWORD)
    const hello: [string, string] = ['EHLO client.example', '250']
    return dialogueOf(kind === 'submission' ? [hello, [`AUTH PLAIN ${login}`, '235']] : [hello])
  }

  function close(): void {
    dialogue?.destroy()
    dialogue = null
  }

  return {
    async send(number) {
      if (dialogue === null) {
        const refused = await open()
        if (refused !== null) {
          close()
          return { text: refused, id: null }
        }
      }
      const sender = kind === 'submission' ? `a@${domain}` : 'sender@client.example'
      const recipient = kind === 'submission' ? `smtp${number}@example.org` : `${ROUTE}@${domain}`
      const id = `<${kind}-${number}@client.example>`
      const refused = await dialogueOf([
        [`MAIL FROM:<${sender}>`, '250'],
        [`RCPT TO:<${recipient}>`, '250'],
        ['DATA', '354'],
        [
          `From: ${sender}\r\nTo: ${recipient}\r\nMessage-Id: ${id}\r\nSubject: outage\r\n\r\nHi.\r\n.`,
          '250',
        ],
      ])
      // Like the server of a sender: a connection for each mail that comes in.
      if (kind === 'incoming' || refused === 'closed') close()
      else if (refused !== null) await dialogue?.say('RSET')
      return refused === null ? { text: '250', id } : { text: refused, id: null }
    },
    end: close,
  }
}

/** How often each answer was given to requests that began and ended between two times, by kind. */
export function answersBetween(answers: readonly Answer[], from: number, to: number) {
  const counts: Record<string, number> = {}
  let slowestMs = 0
  for (const { kind, text, begunAt, endedAt } of answers) {
    if (begunAt < from || endedAt > to) continue
    const name = `${kind}: ${text}`
    counts[name] = (counts[name] ?? 0) + 1
    slowestMs = Math.max(slowestMs, endedAt - begunAt)
  }
  return { counts, slowestMs }
}

/** Milliseconds from `since` until each kind of client had a message accepted at each node; null: not yet. */
export function recoveryMs(answers: readonly Answer[], since: number, nodes: number): number | null {
  const first = new Map<string, number>()
  for (const { kind, node, accepted, endedAt } of answers) {
    if (!accepted || endedAt < since || first.has(`${kind} ${node}`)) continue
    first.set(`${kind} ${node}`, endedAt - since)
  }
  return first.size < 3 * nodes ? null : Math.max(...first.values())
}

/** One URL of all servers, the first with its login. */
export function severalHosts(servers: readonly { url: string }[]): string {
  const [first = '', ...others] = servers.map(({ url }) => url)
  const hosts = [first, ...others].map((url) => new URL(url).host).join(',')
  return `${first.replace(new URL(first).host, hosts)}?target_session_attrs=read-write`
}
