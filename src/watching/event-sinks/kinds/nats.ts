/**
 * NATS JetStream: an event is published as `<topic>.<type>` with its id as Nats-Msg-Id, so that a stream drops repeats within
 * its window, and counts once a stream has confirmed it. The client is loaded when a sink of this kind is opened.
 */
import { AT_ONCE, inOrder, SINK_MAX_MS, type SinkKind } from '../sink.ts'

export const natsSink: SinkKind = {
  ...AT_ONCE,
  needs: ['servers', 'topic'],
  takes: ['servers', 'topic', 'tls', 'user'],
  secret: 'allowed',
  async open({ settings, secret, hostname }) {
    const { servers = [], topic = '', tls: isTls = false, user } = settings
    const { connect } = await import('@nats-io/transport-node')
    const { jetstream } = await import('@nats-io/jetstream')
    const connection = await connect({
      servers: [...servers],
      name: `sendwright ${hostname}`,
      timeout: SINK_MAX_MS,
      reconnect: false,
      ...(isTls && { tls: {} }),
      ...(user !== undefined ? { user, pass: secret } : secret !== '' && { token: secret }),
    })
    const stream = jetstream(connection, { timeout: SINK_MAX_MS })
    return {
      send: (events) =>
        inOrder(events, ({ id, type, json }) => stream.publish(`${topic}.${type}`, json, { msgID: id })),
      close: () => connection.close(),
    }
  },
}
