/** Real brokers on loopback, each with a folder of its own: started, killed, and read from the beginning. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { Admin, Consumer, stringDeserializers } from '@platformatic/kafka'
import { connect as connectAmqp } from 'amqplib'
import { createS3Client } from '../../../src/platform/store/blobs/s3-client.ts'

const run = promisify(execFile)
const TOPIC = 'mail'

export interface Broker {
  /** Settings of a sink. */
  sink: Record<string, unknown>
  /** Gets events each minute only, or when its settings are put again. */
  isPeriodic?: boolean
  start(): Promise<void>
  kill(): Promise<void>
  /** Makes what keeps the events; once. */
  prepare(): Promise<void>
  /** All that it keeps, in order. */
  read(): Promise<{ id: string; text: string }[]>
}

/** Runs `look` until it does not throw, or the broker has ended. */
async function untilUp<T>(child: () => ChildProcess, look: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await look()
    } catch {
      assert.equal(child().exitCode, null, 'the broker has ended')
      await sleep(200)
    }
  }
}

function program(command: string, args: string[], env: Record<string, string> = {}) {
  let child: ChildProcess | null = null
  return {
    child: () => child as ChildProcess,
    start() {
      child = spawn(command, args, { stdio: 'ignore', detached: true, env: { ...process.env, ...env } })
    },
    async kill() {
      if (!child || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      process.kill(-(child.pid as number), 'SIGKILL')
      await ended
    },
  }
}

function nats(folder: string, host: string): Broker {
  const server = `${host}:4222`
  const process = program('nats-server', ['-js', '-a', host, '-p', '4222', '-sd', folder])
  const manager = async () => {
    const connection = await connectNats({ servers: [server], reconnect: false })
    return { connection, manager: await jetstreamManager(connection) }
  }
  return {
    sink: { kind: 'nats', servers: [server], topic: TOPIC },
    async start() {
      process.start()
      const { connection } = await untilUp(process.child, manager)
      await connection.close()
    },
    kill: process.kill,
    async prepare() {
      const { connection, manager: streams } = await manager()
      await streams.streams.add({ name: 'EVENTS', subjects: [`${TOPIC}.>`] })
      await connection.close()
    },
    async read() {
      const { connection, manager: streams } = await manager()
      const { state } = await streams.streams.info('EVENTS')
      const found: { id: string; text: string }[] = []
      for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
        const message = await streams.streams.getMessage('EVENTS', { seq })
        if (message) found.push({ id: message.header.get('Nats-Msg-Id'), text: message.string() })
      }
      await connection.close()
      return found
    },
  }
}

function rabbitmq(folder: string, host: string): Broker {
  const name = `interop${process.pid}@localhost`
  const server = program('/usr/lib/rabbitmq/bin/rabbitmq-server', [], {
    RABBITMQ_NODENAME: name,
    RABBITMQ_NODE_IP_ADDRESS: host,
    RABBITMQ_NODE_PORT: '5672',
    RABBITMQ_MNESIA_BASE: folder,
    RABBITMQ_LOG_BASE: folder,
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    RABBITMQ_DIST_PORT: '25699',
    ERL_EPMD_ADDRESS: '127.0.0.1',
    HOME: folder,
    // Guests come from loopback only, which this is.
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq'),
  })
  const open = () => connectAmqp({ hostname: host, port: 5672 })
  return {
    sink: { kind: 'amqp', servers: [`${host}:5672`], topic: TOPIC },
    async start() {
      await writeFile(join(folder, 'plugins'), '[].')
      await writeFile(join(folder, 'rabbitmq.conf'), 'loopback_users = none\n')
      server.start()
      await (await untilUp(server.child, open)).close()
    },
    kill: server.kill,
    async prepare() {
      const connection = await open()
      const channel = await connection.createChannel()
      await channel.assertExchange(TOPIC, 'topic', { durable: true })
      await channel.assertQueue('events', { durable: true })
      await channel.bindQueue('events', TOPIC, '#')
      await connection.close()
    },
    async read() {
      const connection = await open()
      const channel = await connection.createChannel()
      const found: { id: string; text: string }[] = []
      for (;;) {
        const message = await channel.get('events', { noAck: true })
        if (message === false) break
        found.push({ id: String(message.properties.messageId), text: message.content.toString() })
      }
      await connection.close()
      return found
    },
  }
}

const kafkaSettings = (folder: string, host: string) => `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@${host}:9093
listeners=PLAINTEXT://${host}:9092,CONTROLLER://${host}:9093
advertised.listeners=PLAINTEXT://${host}:9092
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=${folder}/log
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
`

/** `INTEROP_KAFKA` is a folder with the jars of a Kafka server. */
function kafka(folder: string, host: string): Broker {
  const settings = join(folder, 'server.properties')
  const java = ['-Xmx512m', '-cp', `${process.env['INTEROP_KAFKA']}/*`]
  const server = program('java', [...java, 'kafka.Kafka', settings])
  const brokers = { clientId: 'interop', bootstrapBrokers: [`${host}:9092`] }
  let isFormatted = false
  return {
    sink: { kind: 'kafka', servers: [`${host}:9092`], topic: TOPIC },
    async start() {
      if (!isFormatted) {
        await writeFile(settings, kafkaSettings(folder, host))
        const id = ['-t', 'MkU3OEVBNTcwNTJENDM2Qk', '-c', settings]
        await run('java', [...java, 'kafka.tools.StorageTool', 'format', ...id])
        isFormatted = true
      }
      server.start()
      await untilUp(server.child, async () => {
        const admin = new Admin({ ...brokers, retries: 0 })
        await admin.listTopics().finally(() => admin.close())
      })
    },
    kill: server.kill,
    async prepare() {
      const admin = new Admin(brokers)
      await admin.createTopics({ topics: [TOPIC], partitions: 3, replicas: 1 })
      await admin.close()
    },
    async read() {
      const consumer = new Consumer({
        ...{ ...brokers, groupId: `interop-${process.pid}`, deserializers: stringDeserializers },
      })
      const stream = await consumer.consume({ topics: [TOPIC], mode: 'earliest', autocommit: false })
      const found: { id: string; text: string }[] = []
      stream.on('data', ({ headers, value }) => {
        found.push({ id: String(headers.get('id')), text: String(value) })
      })
      // It goes on for ever: the ends of the partitions say how many there are.
      const ends = (await consumer.listOffsets({ topics: [TOPIC] })).get(TOPIC) ?? []
      const count = Number(ends.reduce((sum, end) => sum + end, 0n))
      while (found.length < count) await once(stream, 'data')
      await consumer.close(true)
      return found
    },
  }
}

const BUCKET = 'events'
const METADATA = '._S3rver_metadata.json'
const S3_KEY = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' } as const

function s3(folder: string, host: string): Broker {
  const endpoint = `http://${host}:4568`
  const main = join(import.meta.dirname, '../../../node_modules/s3rver/bin/s3rver.js')
  const options = ['--directory', folder, '--address', host, '--port', '4568', '--configure-bucket', BUCKET]
  const server = program(process.execPath, [main, ...options])
  const client = createS3Client({
    ...{ endpoint, bucket: BUCKET, region: 'us-east-1', ...S3_KEY, sessionToken: null },
  })
  return {
    sink: {
      ...{ kind: 's3', url: endpoint, bucket: BUCKET },
      ...{ access_key_id: S3_KEY.accessKeyId, secret: S3_KEY.secretAccessKey },
    },
    isPeriodic: true,
    async start() {
      server.start()
      await untilUp(server.child, () => client.size('none'))
    },
    kill: server.kill,
    async prepare() {},
    async read() {
      // What a kill left without its metadata is no object. Names begin with the id of the first event.
      const files = await readdir(join(folder, BUCKET), { recursive: true })
      const keys = files
        .filter((file) => file.endsWith(METADATA))
        .map((file) => file.slice(0, -METADATA.length))
      const found: { id: string; text: string }[] = []
      for (const key of keys.sort()) {
        const parts: Uint8Array[] = []
        await client.get(key, async (bytes) => {
          parts.length = 0
          for await (const part of bytes) parts.push(part)
        })
        for (const text of gunzipSync(Buffer.concat(parts)).toString().trimEnd().split('\n'))
          found.push({ id: JSON.parse(text).id, text })
      }
      return found
    },
  }
}

export const BROKERS: Readonly<Record<string, (folder: string, host: string) => Broker>> = {
  nats,
  rabbitmq,
  kafka,
  s3,
}
