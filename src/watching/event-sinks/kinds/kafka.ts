/**
 * Kafka: an event is a record of the topic with its message's id as key, so that events of a message are in one partition in
 * order; the header `id` is the event's. All replicas in sync have it before it counts. The client is loaded when a sink of
 * this kind is opened.
 */
import { AT_ONCE, hostAndPort, SINK_MAX_MS, type SinkKind } from '../sink.ts'

const PORT = 9092
const ALL_IN_SYNC = -1
const MECHANISMS = {
  plain: 'PLAIN',
  'scram-sha-256': 'SCRAM-SHA-256',
  'scram-sha-512': 'SCRAM-SHA-512',
} as const

export const kafkaSink: SinkKind = {
  ...AT_ONCE,
  needs: ['servers', 'topic'],
  takes: ['servers', 'topic', 'tls', 'user', 'mechanism'],
  secret: 'allowed',
  async open({ settings, secret, hostname }) {
    const { servers = [], topic = '', tls: isTls = false, user, mechanism = 'scram-sha-512' } = settings
    const { Producer, stringSerializers } = await import('@platformatic/kafka')
    const producer = new Producer({
      clientId: `sendwright-${hostname}`,
      bootstrapBrokers: servers.map((server) => hostAndPort(server, PORT)),
      serializers: stringSerializers,
      ...{ timeout: SINK_MAX_MS, connectTimeout: SINK_MAX_MS, retries: 1 },
      ...(isTls && { tls: {} }),
      ...(user !== undefined && {
        sasl: { mechanism: MECHANISMS[mechanism], username: user, password: secret },
      }),
    })
    return {
      async send(events) {
        await producer.send({
          acks: ALL_IN_SYNC,
          messages: events.map(({ id, type, messageId, at, json }) => ({
            ...{ topic, key: messageId ?? id, value: json, timestamp: BigInt(at) },
            headers: { id, type },
          })),
        })
      },
      close: () => producer.close(),
    }
  },
}
