/** Events as lines: on standard output, and as syslog over TCP or TLS. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AT_ONCE, hostAndPort, SINK_MAX_MS, type SinkEvent, type SinkKind } from '../sink.ts'

export const stdoutSink: SinkKind = {
  ...AT_ONCE,
  needs: [],
  takes: [],
  secret: 'none',
  async open() {
    return {
      send: (events) => written(process.stdout, events.map(({ json }) => `${json}\n`).join('')),
      close() {},
    }
  },
}

const PORTS = { plain: 514, tls: 6514 } as const
/** Facility local0, severity informational (RFC 5424 §6.2.1). */
const PRIORITY = 16 * 8 + 6

/** RFC 5424 over TLS (RFC 5425) or TCP with counted octets (RFC 6587 §3.4.1). Receivers confirm nothing but the connection. */
export const syslogSink: SinkKind = {
  ...AT_ONCE,
  needs: ['servers'],
  takes: ['servers', 'tls'],
  secret: 'none',
  async open({ settings, hostname }) {
    const isTls = settings.tls ?? false
    const { host, port } = hostAndPort(settings.servers?.[0] ?? '', isTls ? PORTS.tls : PORTS.plain)
    const socket = isTls ? connectTls({ host, port, servername: host }) : connect({ host, port })
    socket.setKeepAlive(true)
    socket.resume()
    let failure: Error | null = null
    socket.on('error', (error) => (failure = error))
    socket.on('close', () => (failure ??= new Error('the receiver closed the connection')))
    await connected(socket, isTls ? 'secureConnect' : 'connect')
    return {
      async send(events) {
        if (failure) throw failure
        await written(socket, events.map((event) => frame(event, hostname)).join(''))
      },
      close: () => void socket.destroy(),
    }
  },
}

async function connected(socket: Socket, event: string): Promise<void> {
  try {
    await once(socket, event, { signal: AbortSignal.timeout(SINK_MAX_MS) })
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function frame({ at, type, json }: SinkEvent, hostname: string): string {
  const text = `<${PRIORITY}>1 ${new Date(at).toISOString()} ${hostname} sendwright - ${type} - ${json}`
  return `${Buffer.byteLength(text)} ${text}`
}

/** Resolves once the system has the text. */
const written = (stream: NodeJS.WritableStream, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()))
  })
