/**
 * A worker that holds connections from many addresses in 127.0.0.0/8 and hardly uses them: half are silent, half send a
 * byte a second. Closed connections are opened again. `workerData` is a `SlowLoad`; every second it posts its
 * `SlowCounts`.
 */
import { createConnection, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

export interface SlowLoad {
  host: string
  port: number
  connections: number
  perAddress: number
  /** Second octet of the addresses. */
  network: number
  /** Sent a byte a second, repeatedly. */
  drip: string
}

export interface SlowCounts {
  open: number
  /** Connections closed by the service, by the first line of its reply; '' for none. */
  endings: Record<string, number>
  /** The longest and shortest time of a silent connection that the service closed. */
  lastedMs: { least: number; most: number }
}

const SLICES = 10
/** Connections opened every tenth of a second. */
const BEGIN_MAX = 100

function load(options: SlowLoad): void {
  const { host, port, connections, perAddress, network, drip } = options
  const counts: SlowCounts = { open: 0, endings: {}, lastedMs: { least: Infinity, most: 0 } }
  const dripping: Set<Socket>[] = Array.from({ length: SLICES }, () => new Set())
  const sent = new WeakMap<Socket, number>()
  const missing = Array.from({ length: connections }, (_, index) => index)

  const begin = (index: number) => {
    const address = Math.floor(index / perAddress)
    const localAddress = `127.${network}.${address >> 8}.${1 + (address & 127)}`
    const socket = createConnection({ host, port, localAddress })
    const isSilent = index % 2 === 0
    const slice = dripping[index % SLICES] as Set<Socket>
    const begunAt = performance.now()
    let said = ''
    socket.once('connect', () => {
      counts.open += 1
      if (!isSilent) slice.add(socket)
      socket.once('close', () => {
        counts.open -= 1
        const line =
          said
            .trimEnd()
            .split('\r\n')
            .at(port === 2525 ? -1 : 0) ?? ''
        counts.endings[line] = (counts.endings[line] ?? 0) + 1
        if (!isSilent || !/408/.test(line)) return
        const lastedMs = performance.now() - begunAt
        counts.lastedMs.least = Math.min(counts.lastedMs.least, lastedMs)
        counts.lastedMs.most = Math.max(counts.lastedMs.most, lastedMs)
      })
    })
    socket.setEncoding('latin1').on('data', (text: string) => {
      said = (said + text).slice(0, 500)
    })
    socket.on('error', () => {})
    socket.once('close', () => {
      slice.delete(socket)
      missing.push(index)
    })
  }

  let tick = 0
  setInterval(() => {
    for (const index of missing.splice(0, BEGIN_MAX)) begin(index)
    for (const socket of dripping[tick++ % SLICES] as Set<Socket>) {
      const at = sent.get(socket) ?? 0
      socket.write(drip[at % drip.length] as string)
      sent.set(socket, at + 1)
    }
    if (tick % SLICES === 0) parentPort?.postMessage(counts)
  }, 1_000 / SLICES)
}

if (parentPort !== null) load(workerData as SlowLoad)
