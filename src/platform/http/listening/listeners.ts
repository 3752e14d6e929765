/**
 * The service's HTTP listeners: one without TLS, in a thread of its own where that pays, one with TLS if wanted, and one for
 * the command line.
 */
import type { Logger } from 'pino'
import { CannotListen } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { HeaderFault } from '../../../protocols/proxy/accepting.ts'
import type { Arrival } from './arrival.ts'
import { createListener, type Deadlines, type TlsOptions } from './listener.ts'
import { createSocketListener, socketFile } from './local-socket.ts'
import { createThreadedListener } from './threaded-listener.ts'

/** Time for running requests to end once the listeners close. */
const CLOSE_GRACE_MS = 10_000

export interface TlsListening extends TlsOptions {
  /** 0: any free one. */
  port: number
}

export interface ListenersOptions {
  host: string
  /** 0: any free one. */
  port: number
  /** A second listener with TLS for the same routes; null: none. */
  tls: TlsListening | null
  /** Has the socket of the command line; null: there is none. */
  dataFolder: string | null
  /** The listener without TLS has a thread of its own. */
  thread: boolean
  deadlines: Deadlines
  /** Connections of one client on each listener; trusted proxies may have any number. */
  connectionsPerClientMax: number
  /** Addresses and networks whose X-Forwarded-For and -Proto count. */
  trustedProxies: readonly string[]
  /** Addresses and networks whose connections begin with a PROXY header. */
  balancers: readonly string[]
  logger: Logger
  clock: Clock
}

export type Listeners = ReturnType<typeof createListeners>

/** @param handle is called for every request, over TLS or not */
export function createListeners(options: ListenersOptions, handle: (arrival: Arrival) => void) {
  const { clock, logger, tls, dataFolder, deadlines, thread } = options
  const onFailure = (error: Error) => logger.error({ err: error }, 'the HTTP thread failed')
  const listening = {
    deadlines,
    connections: {
      perClientMax: options.connectionsPerClientMax,
      proxies: options.trustedProxies,
      balancers: options.balancers,
    },
    onHeaderFault: (fault: HeaderFault) =>
      logger.warn({ ...fault }, 'HTTP: a connection of a balancer was closed'),
  }
  const plain = thread
    ? createThreadedListener({ ...listening, onFailure }, handle)
    : createListener(listening, handle)
  const secure = tls && createListener({ ...listening, tls }, handle)
  const local = dataFolder === null ? null : createSocketListener(dataFolder, deadlines, handle)
  const all = [plain, secure, local].filter((listener) => listener !== null)

  /** Without it the service can do its work: some file systems have no sockets. */
  async function listenLocally(): Promise<void> {
    await local?.listen().catch((error: Error) => {
      const file = socketFile(dataFolder ?? '')
      logger.warn(
        { file, reason: error.message },
        'commands cannot reach the service: no socket can be opened',
      )
    })
  }

  return {
    /** Resolves with the ports once every listener is open. Rejects when one cannot be; then none is. */
    async listen(): Promise<{ port: number; tlsPort?: number }> {
      const port = await plain.listen(options.port, options.host).catch((error: Error) => {
        throw new CannotListen('HTTP', ['HOST', 'PORT'], error)
      })
      if (secure === null || tls === null) {
        await listenLocally()
        return { port }
      }
      try {
        const tlsPort = await secure.listen(tls.port, options.host).catch((error: Error) => {
          throw new CannotListen('HTTPS', ['HOST', 'HTTPS_PORT'], error)
        })
        await listenLocally()
        return { port, tlsPort }
      } catch (error) {
        await plain.close()
        throw error
      }
    },
    /** Waits for running requests up to the grace period, then cuts the rest. */
    async close(): Promise<void> {
      const cut = clock.setTimer(deadlines.closeGraceMs ?? CLOSE_GRACE_MS, () => {
        for (const listener of all) listener.cut()
      })
      await Promise.all(all.map((listener) => listener.close())).finally(() => cut.cancel())
    },
  }
}
