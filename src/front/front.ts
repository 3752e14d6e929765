/**
 * The role `front`: one address for the clients of all pods (decision 257). It finds the pod of each request in the directory of
 * pods, and passes the connection on to one of its nodes. It stores nothing, so that any number of them can run.
 */
import { readFileSync } from 'node:fs'
import type { Logger } from 'pino'
import { Counter, Gauge, Registry } from 'prom-client'
import { CannotListen } from '../base/process/errors.ts'
import { systemClock } from '../base/time/clock.ts'
import { SECOND_MS } from '../base/time/durations.ts'
import { SCHEDULE_MAX_MS } from '../mail/accept/decide.ts'
import { keyDigest } from '../people/keys/api-keys.ts'
import type { Config } from '../platform/config/config.ts'
import { JSON_TYPE } from '../platform/http/listening/arrival.ts'
import type { DirectArrival } from '../platform/http/listening/direct-arrival.ts'
import { createListener } from '../platform/http/listening/listener.ts'
import { createRemoteAddresses } from '../platform/http/request/origin.ts'
import { Servers, WritablePool } from '../platform/store/postgres/postgres-servers.ts'
import { createSealer } from '../platform/store/secrets/sealing.ts'
import { readSecret, SecretFault } from '../platform/store/secrets/secret-file.ts'
import { sessionSettings } from '../receiving/sessions/session-settings.ts'
import { SMTP_CONNECTIONS_MAX, startSmtpListener } from '../receiving/sessions/smtp-listener.ts'
import { createTlsIdentity, tlsIdentityFiles } from '../receiving/sessions/tls-identity.ts'
import { MODERN_TLS } from '../sending/certificates/tls-contexts.ts'
import { createTokens } from '../sending/tracking/links/tokens.ts'
import { type Directory, openDirectory, type Query } from './directory.ts'
import { createHttpFront } from './http.ts'
import { createDial } from './nodes.ts'
import { serveThrough } from './smtp.ts'

type Closers = (() => unknown)[]

export interface Front {
  port: number
  httpsPort: number | null
  /** Null: `SENDWRIGHT_FRONT_STATUS` is not set. */
  statusPort: number | null
  smtp: { port: number; implicitTlsPort: number | null }
  /** Accepts no more clients, lets what runs end within 20 seconds, and closes everything. */
  stop(): Promise<void>
}

/** Requests and messages in progress get this long. */
const DRAIN_MS = 20 * SECOND_MS

/** @param query of the directory; default: on `SENDWRIGHT_DATABASE_URL`. @throws CannotListen, SecretFault */
export async function startFront(config: Config, log: Logger, query?: Query): Promise<Front> {
  const clock = systemClock
  const secret = readSecret(config.secret, config.dataFolder)
  if (secret === null)
    throw new SecretFault('A front finds keys by the secret of the nodes: set SENDWRIGHT_SECRET to it')
  const sealer = createSealer(secret)
  const figures = createFigures()
  const closers: Closers = []
  const stop = async () => {
    for (const close of closers.splice(0).reverse())
      await Promise.resolve(close()).catch((err: unknown) => log.error({ err }, 'cannot stop a part'))
  }
  try {
    const directory = await openDirectory({ query: query ?? connect(config, closers), clock, log })
    closers.push(() => directory.close())
    const dial = createDial(clock, (node, err) => {
      figures.unreached.inc({ node })
      log.warn({ node, reason: err.message }, 'a node cannot be reached')
    })
    const identity = {
      ...{ files: config.smtpTls, dataFolder: config.dataFolder, hostname: config.hostname, clock, log },
      minVersion: config.smtpTlsMinVersion,
    }
    const links = createTokens(sealer)
    const pass = createHttpFront({
      ...{ directory, dial, digest: (key) => keyDigest(sealer, key) },
      linkedAccount: (token) => links.readUnsubscribe(token)?.accountId,
      remote: createRemoteAddresses(config.trustedProxies),
      answered: ({ pod, status }) => figures.requests.inc({ pod, status }),
      onBroken: (pod, err) => log.warn({ pod, reason: err.message }, 'a request broke off'),
    })
    const health = createHealth(directory, figures.registry)
    const serve = (arrival: DirectArrival) =>
      health(arrival, false) ||
      pass(arrival).catch((err: unknown) => {
        log.error({ err }, 'a request failed in the front')
        arrival.abandon()
      })
    const listening = {
      connections: {
        perClientMax: config.httpConnectionsPerIpMax,
        ...{ proxies: config.trustedProxies, balancers: config.httpBalancers },
      },
      onHeaderFault: (fault: object) => log.warn({ ...fault }, 'HTTP: a connection of a balancer was closed'),
      collects: false,
    }
    const listen = async (
      listener: ReturnType<typeof createListener>,
      port: number,
      host: string,
      setting: string,
    ) => {
      const opened = await listener.listen(port, host).catch((error: Error) => {
        throw new CannotListen('HTTP', ['HOST', setting], error)
      })
      closers.push(async () => {
        const cut = clock.setTimer(DRAIN_MS, () => listener.cut())
        await listener.close().finally(() => cut.cancel())
      })
      return opened
    }
    const plain = createListener(listening, serve)
    const port = await listen(plain, config.port, config.host, 'PORT')
    let httpsPort: number | null = null
    if (config.httpsPort !== null) {
      const context = createTlsIdentity({ ...identity, ...MODERN_TLS })
      const files = tlsIdentityFiles(identity)
      const options = {
        ...MODERN_TLS,
        ...{ cert: readFileSync(files.certificateFile), key: readFileSync(files.keyFile) },
        SNICallback: (_: string, done: (error: null, found: ReturnType<typeof context>) => void) =>
          done(null, context()),
      }
      const secure = createListener({ ...listening, tls: { options } }, serve)
      httpsPort = await listen(secure, config.httpsPort, config.host, 'HTTPS_PORT')
    }
    const { frontStatus } = config
    const statusPort =
      frontStatus &&
      (await listen(
        createListener({}, (arrival) => void (health(arrival, true) || arrival.abandon())),
        frontStatus.port,
        frontStatus.host,
        'FRONT_STATUS',
      ))
    const session = {
      ...sessionSettings(config, SCHEDULE_MAX_MS),
      secureContext: createTlsIdentity(identity),
      passed: (pod: string, kind: string) => figures.sessions.inc({ pod, kind }),
      ...{ directory, dial, clock, log },
    }
    const smtp = await startSmtpListener({
      ...{ host: config.smtpHost, port: config.smtpPort, implicitTlsPort: config.smtpsPort },
      ...{ connectionsPerAddressMax: config.smtpConnectionsPerIpMax, balancers: config.smtpBalancers },
      connectionsMax: SMTP_CONNECTIONS_MAX,
      serve: (channel, ...client) => serveThrough(channel, session, ...client),
      ...{ clock, log },
    })
    closers.push(() => smtp.close(DRAIN_MS))
    return { port, httpsPort, statusPort, smtp, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function connect({ databaseUrl }: Config, closers: Closers): Query {
  const pool = new WritablePool(new Servers(databaseUrl ?? ''), {
    max: 2,
    query_timeout: 2 * SECOND_MS,
    keepAlive: true,
    application_name: 'sendwright front',
  })
  pool.on('error', () => {})
  closers.push(() => pool.end())
  return async (sql, values) => (await pool.query(sql, values)).rows as Record<string, unknown>[]
}

function createFigures() {
  const registry = new Registry()
  const registers = [registry]
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name: `sendwright_front_${name}_total`, help, labelNames, registers })
  return {
    registry,
    requests: counter('requests', 'HTTP requests by pod and status.', ['pod', 'status']),
    sessions: counter('smtp', 'Logins and messages without one, by pod.', ['pod', 'kind']),
    unreached: counter('nodes_unreached', 'Connections to nodes that failed.', ['node']),
  }
}

/** Answers for the front itself, and says whether it has. @param isStatus figures are for this listener */
function createHealth(directory: Directory, registry: Registry) {
  new Gauge({
    name: 'sendwright_front_directory_age_seconds',
    help: 'Since the list of pods was read.',
    registers: [registry],
    collect() {
      this.set(directory.ageMs() / SECOND_MS)
    },
  })
  const answer = (arrival: DirectArrival, status: number, type: string, body: string) =>
    arrival.answer(
      status,
      { 'content-type': type, 'content-length': Buffer.byteLength(body) },
      body,
      () => {},
    )
  const answerJson = (arrival: DirectArrival, status: number, value: object) =>
    answer(arrival, status, JSON_TYPE, JSON.stringify(value))

  return (arrival: DirectArrival, isStatus: boolean): boolean => {
    const path = arrival.url.replace(/\?.*$/s, '')
    if (path === '/health/live') answerJson(arrival, 200, { status: 'ok' })
    else if (path === '/health/ready' || path === '/health') {
      if (directory.fallback() !== null) answerJson(arrival, 200, { status: 'ok' })
      else
        answerJson(arrival, 503, {
          message: 'Service Unavailable',
          reason: 'The directory of pods cannot be read',
        })
    } else if (isStatus && path === '/metrics')
      void registry.metrics().then((text) => answer(arrival, 200, registry.contentType, text))
    else return false
    return true
  }
}
