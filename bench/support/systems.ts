/** The systems under measurement behind one interface, and runs that alternate between them. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Flow,
  LOAD_LIMIT_MS,
  measureFlow,
  type Sink,
  type SinkFile,
  type System,
  startSink,
} from './flow.ts'
import { startHelper } from './helper-process.ts'
import type { HttpLoad } from './http-load.ts'
import type { LoadAmount, LoadResult } from './load.ts'
import { NUMBER_MARK } from './load.ts'
import { type Content, mimeMessage, RECIPIENT_DOMAIN, sendRequest } from './messages.ts'
import { PEER_SENDER, startPostfix } from './postfix.ts'
import { type Rig, withRig } from './rig.ts'
import { type BenchService, type Database, startService } from './service.ts'
import type { SmtpLoad } from './smtp-load.ts'
import { formatNumber, median } from './stats.ts'

/** Concurrent sessions or connections, for all systems. */
export const SESSIONS = 50

export interface Amounts {
  warmUp: LoadAmount
  /** Between the two: our process sends fewer messages at a time for five seconds after its start (decision 30). */
  restMs: number
  measured: LoadAmount
}

export interface Candidate {
  name: string
  /** Separate amounts, where one request is more than one delivery, or less is enough to warm it up. */
  amounts?: Amounts
  start(rig: Rig, sink: Sink): Promise<System>
}

export type Fields = readonly (readonly [string, string])[]

/** Ours over HTTP. `fields`: the form of one request. */
export function ours(
  name: string,
  database: Database,
  fields: (service: BenchService) => Fields,
  options: {
    recipients?: number
    connections?: number
    env?: Record<string, string>
    nodeFlags?: string[]
    /** As in `startService`. */
    launcher?: string
  } = {},
): Candidate {
  return {
    name,
    async start(rig, sink) {
      const service = await startService(rig, {
        database,
        env: { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`, ...options.env },
        ...(options.nodeFlags && { nodeFlags: options.nodeFlags }),
        ...(options.launcher && { launcher: options.launcher }),
      })
      const request = sendRequest(service, fields(service))
      return {
        roots: service.roots,
        recipients: options.recipients ?? 1,
        load: httpLoad(rig, service, request, options.connections ?? SESSIONS),
        stop: service.stop,
      }
    },
  }
}

export function httpLoad(
  rig: Rig,
  { host, port }: { host: string; port: number },
  request: string | readonly string[],
  connections: number,
  mayBeLimited = false,
): System['load'] {
  const helper = startHelper<HttpLoad, LoadResult>(rig, 'http-load.ts')
  const requests = typeof request === 'string' ? [request] : request
  return (amount, record = false) =>
    helper.ask({ ...amount, host, port, requests, connections, record, mayBeLimited }, LOAD_LIMIT_MS)
}

/** Ours over SMTP submission, with the bytes that Postfix gets. */
export function oursOverSmtp(name: string, database: Database, content: Content): Candidate {
  return {
    name,
    async start(rig, sink) {
      const service = await startService(rig, {
        database,
        env: { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
      })
      const login = { user: `sender@${service.domain}`, password: 'bench-password-0123456789' }
      await service.call('POST', `/v3/domains/${service.domain}/credentials`, {
        login: login.user,
        password: login.password,
      })
      const load = smtpLoad(rig, {
        port: service.smtpPort,
        login,
        from: login.user,
        content,
      })
      return { roots: service.roots, recipients: 1, load, stop: service.stop }
    },
  }
}

export function postfix(name: string, signed: boolean, content: Content): Candidate {
  return {
    name,
    async start(rig, sink) {
      const { port, roots, stop } = await startPostfix(rig, { sinkPort: sink.port, signed })
      return {
        roots,
        recipients: 1,
        load: smtpLoad(rig, { port, login: null, from: PEER_SENDER, content }),
        stop,
      }
    },
  }
}

/** Ours receiving mail, with a route that posts it to the sink. */
export function oursReceiving(
  name: string,
  database: Database,
  content: Content,
  form: 'raw' | 'parsed',
): Candidate {
  return {
    name,
    async start(rig, sink) {
      const service = await startService(rig, {
        database,
        // Nobody listens there: the look-ups of the checks fail at once, and ask nothing of a name server.
        env: { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8', SENDWRIGHT_DNS: '127.0.0.1:9' },
      })
      await service.call('POST', '/v3/routes', {
        expression: 'catch_all()',
        action: `forward("http://127.0.0.1:${sink.port}/${form === 'raw' ? 'mime' : 'in'}")`,
      })
      const load = smtpLoad(rig, {
        ...{ port: service.smtpPort, login: null, from: PEER_SENDER, content },
        domain: service.domain,
      })
      return { roots: service.roots, recipients: 1, load, stop: service.stop }
    },
  }
}

/** Postfix with a pipe to a program that posts each message to the sink. */
export function postfixPosting(name: string, content: Content): Candidate {
  return {
    name,
    async start(rig, sink) {
      const { port, roots, stop } = await startPostfix(rig, { postTo: `http://127.0.0.1:${sink.port}/mime` })
      const load = smtpLoad(rig, { port, login: null, from: PEER_SENDER, content })
      return { roots, recipients: 1, load, stop }
    },
  }
}

/** The load generator directly into the sink: the limit of the tools themselves. */
export function sinkAlone(name: string, content: Content): Candidate {
  return {
    name,
    async start(rig, sink) {
      const load = smtpLoad(rig, { port: sink.port, login: null, from: PEER_SENDER, content })
      return { roots: [sink.pid], recipients: 1, load, stop: async () => {} }
    },
  }
}

function smtpLoad(
  rig: Rig,
  {
    content: given,
    domain = RECIPIENT_DOMAIN,
    ...parts
  }: Pick<SmtpLoad, 'port' | 'login' | 'from'> & { content: Content; domain?: string },
): System['load'] {
  const helper = startHelper<SmtpLoad, LoadResult>(rig, 'smtp-load.ts')
  const to = `r${NUMBER_MARK}@${domain}`
  const content = mimeMessage(parts.from, to, given)
  return (amount, record = false) =>
    helper.ask(
      { ...amount, ...parts, content, to, host: '127.0.0.1', sessions: SESSIONS, record },
      LOAD_LIMIT_MS,
    )
}

export interface Measured {
  name: string
  flows: Flow[]
  perSecond: number
  cpuPerThousand: number
  pssMb: number
}

/**
 * Runs the candidates in turns, `runs` times, each freshly started and warmed up, so that changes on the
 * machine affect all of them.
 */
export async function alternate(
  folder: string,
  candidates: readonly Candidate[],
  runs: number,
  amounts: Amounts,
  sinkFile?: SinkFile,
): Promise<Measured[]> {
  const flows = candidates.map((): Flow[] => [])
  for (let run = 1; run <= runs; run++) {
    for (const [at, candidate] of candidates.entries()) {
      const flow = await runOnce(folder, candidate, candidate.amounts ?? amounts, sinkFile)
      flows[at]?.push(flow)
      console.log(
        `  run ${run}  ${candidate.name}: ${formatNumber(flow.perSecond)}/s, ` +
          `${formatNumber(flow.cpuPerThousand, 2)} CPU s per 1,000, peak ${formatNumber(flow.peak.pssMb, 0)} MB`,
      )
    }
  }
  return candidates.map(({ name }, at) => summary(name, flows[at] ?? []))
}

function runOnce(folder: string, candidate: Candidate, amounts: Amounts, sinkFile?: SinkFile): Promise<Flow> {
  const { warmUp, restMs, measured } = amounts
  return withRig(folder, async (rig) => {
    const sink = await startSink(rig, undefined, sinkFile)
    const system = await candidate.start(rig, sink)
    await measureFlow(sink, system, warmUp)
    await sleep(restMs)
    const flow = await measureFlow(sink, system, measured)
    await system.stop()
    return flow
  })
}

const summary = (name: string, flows: Flow[]): Measured => ({
  name,
  flows,
  perSecond: median(flows.map((flow) => flow.perSecond)),
  cpuPerThousand: median(flows.map((flow) => flow.cpuPerThousand)),
  pssMb: median(flows.map((flow) => flow.peak.pssMb)),
})

/** A table of the measurements, with ratios to some of the systems. */
export function tableOf(measured: readonly Measured[], references: readonly string[] = []) {
  const bases = references.flatMap((name) => measured.find((entry) => entry.name === name) ?? [])
  return {
    head: [
      'System',
      'Deliveries/s (median)',
      'All runs',
      ...bases.map(({ name }) => `× ${name}`),
      'Requests/s accepted',
      'Accept p50 / p99 ms',
      'CPU s per 1,000',
      'Peak PSS MB',
      'Signed',
    ],
    rows: measured.map(({ name, flows, perSecond, cpuPerThousand, pssMb }) => [
      name,
      formatNumber(perSecond, 0),
      flows.map((flow) => formatNumber(flow.perSecond, 0)).join(', '),
      ...bases.map((base) => formatNumber(perSecond / base.perSecond, 2)),
      formatNumber(median(flows.map((flow) => flow.acceptedPerSecond)), 0),
      ['p50', 'p99']
        .map((rank) => formatNumber(median(flows.map(({ load }) => load.latencyMs[rank as 'p50'])), 1))
        .join(' / '),
      formatNumber(cpuPerThousand, 2),
      formatNumber(pssMb, 0),
      flows.every((flow) => flow.signed > 0) ? 'yes' : 'no',
    ]),
  }
}
