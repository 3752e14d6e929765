/**
 * AMQP 0-9-1, such as RabbitMQ: an event is published to the exchange `topic`, with its type as routing key and its id as
 * message id. It counts once the broker has confirmed it; one that no queue is bound for has failed. The client is loaded
 * when a sink of this kind is opened.
 */
import { AT_ONCE, hostAndPort, inOrder, SINK_MAX_MS, type SinkEvent, type SinkKind } from '../sink.ts'

const PORTS = { plain: 5672, tls: 5671 } as const
const HEARTBEAT_SECONDS = 10

export const amqpSink: SinkKind = {
  ...AT_ONCE,
  needs: ['servers', 'topic'],
  takes: ['servers', 'topic', 'tls', 'user', 'vhost'],
  secret: 'allowed',
  async open({ settings, secret, hostname }) {
    const { servers = [], topic = '', tls: isTls = false, user = 'guest', vhost = '/' } = settings
    const { connect } = await import('amqplib')
    const { host, port } = hostAndPort(servers[0] ?? '', isTls ? PORTS.tls : PORTS.plain)
    const connection = await connect(
      {
        ...{ protocol: isTls ? 'amqps' : 'amqp', hostname: host, port, vhost },
        ...{ username: user, password: secret || 'guest', heartbeat: HEARTBEAT_SECONDS },
      },
      { timeout: SINK_MAX_MS, clientProperties: { connection_name: `sendwright ${hostname}` } },
    )
    const ended = new AbortController()
    const end = (error?: Error) => ended.abort(error ?? new Error('the broker closed the connection'))
    connection.on('error', end)
    connection.on('close', end)
    const channel = await connection.createConfirmChannel()
    channel.on('error', end)
    channel.on('close', () => end())
    await channel.checkExchange(topic)
    const unbound = new Set<string>()
    // Comes before the confirmation of the same message.
    channel.on('return', ({ properties }) => unbound.add(String(properties.messageId)))

    const publish = ({ id, type, json, at }: SinkEvent) =>
      new Promise<void>((resolve, reject) => {
        const fail = () => reject(ended.signal.reason)
        if (ended.signal.aborted) return fail()
        ended.signal.addEventListener('abort', fail, { once: true })
        const about = {
          contentType: 'application/json',
          messageId: id,
          type,
          timestamp: Math.floor(at / 1000),
        }
        const options = { ...about, persistent: true, mandatory: true }
        channel.publish(topic, type, Buffer.from(json), options, (error) => {
          ended.signal.removeEventListener('abort', fail)
          if (error) reject(error)
          else if (unbound.delete(id)) reject(new Error(`no queue is bound to ${topic} for ${type}`))
          else resolve()
        })
      })
    return { send: (events) => inOrder(events, publish), close: () => connection.close() }
  },
}
