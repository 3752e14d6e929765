/** What a kind of sink is: its settings, and a connection that takes events. Types, and the order that brokers keep. */
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import type { GivenSink } from './shapes.ts'

/** An event on its way to a sink. */
export interface SinkEvent {
  /** The same on each repeat. */
  id: string
  type: string
  accountId: string
  domainName: string
  /** Null: it is about no message. */
  messageId: string | null
  /** When it happened, Unix milliseconds. */
  at: number
  /** One JSON object on one line: the event with `account` and `domain`, as webhooks have it. */
  json: string
}

export interface SinkConnection {
  /**
   * Resolves once the sink has said that it has all of them. After a failure the same events come again, on a new
   * connection.
   */
  send(events: readonly SinkEvent[]): Promise<void>
  close(): Promise<void> | void
}

/** What is stored of a sink besides its name, kind and secret. */
export type SinkSettings = Omit<GivenSink, 'kind' | 'secret' | 'from'>

export interface OpenParts {
  settings: SinkSettings
  /** Empty: it has none. */
  secret: string
  client: HttpClient
  /** Names this process to brokers and in syslog. */
  hostname: string
}

export interface SinkKind {
  /** Settings that there must be, and those that there may be. */
  needs: readonly (keyof SinkSettings)[]
  takes: readonly (keyof SinkSettings)[]
  secret: 'needed' | 'allowed' | 'none'
  /** Events in one `send` at most. */
  eventsMax: number
  /** After the last event, until the next look for others. */
  everyMs: number
  open(parts: OpenParts): Promise<SinkConnection>
}

/** A broker or collector that does not answer within this time has failed. */
export const SINK_MAX_MS = 10_000

/** For kinds that take each event as soon as there is one. */
export const AT_ONCE = { eventsMax: 500, everyMs: 1_000 } as const

const pack = promisify(gzip)

/**
 * Gzip at the fastest level: events repeat so much that a batch becomes a tenth larger than at the default one, for half of the
 * processor time, which was half of a sink's.
 */
export const compressed = (text: Buffer): Promise<Buffer> => pack(text, { level: constants.Z_BEST_SPEED })

/**
 * Publishes events, those of one message one after the other: when one fails, none of the later ones of its message has been
 * taken before it. Rejects with the first failure once none is under way.
 */
export async function inOrder(
  events: readonly SinkEvent[],
  publish: (event: SinkEvent) => Promise<unknown>,
): Promise<void> {
  const ofMessages = Map.groupBy(events, ({ messageId, id }) => messageId ?? id)
  const results = await Promise.allSettled(
    [...ofMessages.values()].map(async (some) => {
      for (const event of some) await publish(event)
    }),
  )
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
}

/** Splits "host:port", "host" or "[address]:port". */
export function hostAndPort(server: string, defaultPort: number): { host: string; port: number } {
  const [, address, name, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(server) ?? []
  return { host: address ?? name ?? server, port: port === undefined ? defaultPort : Number(port) }
}
