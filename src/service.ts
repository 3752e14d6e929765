/** The composition root: opens the core, builds the areas, starts what listens, stops all of it. */
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import type { Area } from './area.ts'
import { buildAreas } from './areas.ts'
import { systemClock } from './base/time/clock.ts'
import type { Core } from './core.ts'
import { createHttp } from './http-listeners.ts'
import type { SendingOverrides } from './mail/messages/area.ts'
import { type Closers, type CoreOverrides, openCore } from './open-core.ts'
import type { FirstAccount } from './people/access/first-start.ts'
import type { Sessions } from './people/sign-in/sessions.ts'
import type { Config } from './platform/config/config.ts'
import type { Operation } from './platform/http/operation.ts'
import { createJobRunner } from './platform/jobs/job.ts'
import type { Role } from './platform/nodes/node.ts'
import { keepPresence, placeOf } from './platform/nodes/presence.ts'
import { urlHostsOf } from './sending/domains/dns/own-hosts.ts'
import { startSmtp } from './smtp-listeners.ts'
import { mcpArea } from './tools/mcp/area.ts'
import type { Figures } from './watching/metrics/figures.ts'

export interface Service {
  /** Port of the HTTP listener, also when the configured one was 0. */
  port: number
  /** Port of the HTTPS listener; null where that is off. */
  httpsPort: number | null
  /** Port of the SMTP listener, 0 without the role `smtp`; with TLS from the first byte null where that is off. */
  smtp: { port: number; implicitTlsPort: number | null }
  first: FirstAccount
  sessions: Sessions
  /** Reads the files again that may change while the service runs. */
  reload(): Promise<void>
  /** Finishes what is running, within about 30 seconds, and closes everything. */
  stop(): Promise<void>
}

/** What comes from outside: things that tests replace, and what the process wants to know of the service. */
export interface ServiceOverrides extends CoreOverrides {
  /** Addresses whose failed logins and wrong keys do not count. Default: loopback. */
  isExempt?: (address: string) => boolean
  /** Other areas as sending sees them. */
  sending?: SendingOverrides
  /** What alerts on rates are judged by. */
  figures?: Figures
  /** Names of jobs that do not run by themselves. */
  restingJobs?: readonly string[]
  /** As `hasThread` of `createHttp`. */
  listeningThread?: boolean
  /** What is served in place of each operation. */
  operation?: (spec: Operation) => Operation
  /** Areas beside those of areas.ts. */
  areas?: readonly ((core: Core) => Area | Promise<Area>)[]
}

/** SMTP sessions get this long to end on a stop; R12 allows 30 s for all of it. */
const DRAIN_MS = 20_000

/** Starts the whole service. What was opened before a failing step is closed again. */
export async function startService(
  config: Config,
  log: Logger,
  overrides: ServiceOverrides = {},
): Promise<Service> {
  const open: Closers = []
  const stop = async () => {
    for (const close of open.splice(0).reverse()) {
      await Promise.resolve(close()).catch((error: unknown) =>
        log.error({ err: error }, 'cannot stop a part'),
      )
    }
  }
  try {
    const { core, interests, keys, first, secret } = await openCore(config, log, overrides, open)
    const runner = createJobRunner(
      { ...core, owner: core.leaseOwner },
      config.roles.includes('jobs'),
      overrides.restingJobs,
    )
    const areas: Area[] = []
    open.push(() => stopAreas(areas, log))
    const named = await buildAreas(
      core,
      {
        keys,
        secret,
        jobs: runner.report,
        systemClock: overrides.clock ?? systemClock,
        isExempt: overrides.isExempt,
        sending: overrides.sending ?? {},
        figures: overrides.figures,
        further: overrides.areas ?? [],
      },
      areas,
    )
    const { accounts, domains } = named
    interests.push(...areas.flatMap(({ withEvents }) => withEvents ?? []))
    const sandbox = await core.domains.byName(first.sandboxDomain)
    if (sandbox) await core.store.transaction(await accounts.credentials.systemWrite(sandbox, null))
    const { http, jobs } = createHttp(core, named, overrides.listeningThread)
    areas.push(mcpArea(core, { http, audit: accounts.audit }))
    const does = (role: Role) => config.roles.includes(role)
    const { operation = (spec: Operation) => spec } = overrides
    // Without the role only /health is answered.
    if (does('api')) http.register(areas.flatMap(({ operations }) => operations ?? []).map(operation))
    runner.add([...areas.flatMap((area) => area.jobs ?? []), ...jobs])
    open.push(() => runner.stop())
    core.nodes.onReturned(() => runner.leasesReturned())
    const { port, tlsPort = null } = await http.listen()
    open.push(() => http.close())
    let smtp: Service['smtp'] = { port: 0, implicitTlsPort: null }
    if (does('smtp')) {
      const listener = await startSmtp(core, {
        ...named,
        readers: areas.flatMap(({ addresses }) => addresses ?? []),
        mailReader: areas.find(({ mailReader }) => mailReader)?.mailReader,
        ...domains,
      })
      open.push(() => listener.close(DRAIN_MS))
      smtp = listener
    }
    await noteInPods(core, { http: does('api') ? port : 0, smtp: smtp.port }, open)
    for (const area of areas) await area.start?.()
    // After the listeners: a certificate authority looks for its challenge there.
    runner.start()
    open.push(() => core.nodes.stopping())
    const reload = () => named.messages.shaping.reload()
    return { port, httpsPort: tlsPort, smtp, first, sessions: accounts.sessions, reload, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Says in the directory of pods where the listeners are; port 0: that one is off. Without pods does nothing. */
async function noteInPods(
  { config, store, nodes, log }: Core,
  ports: { http: number; smtp: number },
  open: Closers,
): Promise<void> {
  if (store.pod === null) return
  const place = (host: string, port: number) =>
    port === 0 ? null : placeOf({ named: config.podHost, host, hostName: hostname() }, port)
  const presence = await keepPresence(
    { store: { transaction: store.transaction, pod: store.pod }, id: nodes.id, log },
    { http: place(config.host, ports.http), smtp: place(config.smtpHost, ports.smtp) },
    urlHostsOf(config),
  )
  open.push(() => presence.close())
}

/** In reverse order; one that fails does not keep the others open. */
async function stopAreas(areas: readonly Area[], log: Logger): Promise<void> {
  for (const area of areas.toReversed()) {
    try {
      await area.stop?.()
    } catch (error) {
      log.error({ err: error }, 'cannot stop a part')
    }
  }
}
