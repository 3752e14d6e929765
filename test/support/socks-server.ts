/** A SOCKS5 server (RFC 1928, RFC 1929) that connects from an address of its own, and can misbehave. */
import { connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface SocksServer {
  readonly host: string
  readonly port: number
  /** Targets that were asked for, as `address:port`. */
  readonly targets: string[]
  /** Reply to the next requests in place of connecting (RFC 1928 §6); null: connect. */
  refuseWith: number | null
  close(): Promise<void>
}

export interface SocksOptions {
  host: string
  port?: number
  /** Connections to the targets come from it. */
  from: string
  login?: { user: string; password: string }
  /** It connects here, whatever is asked for. */
  instead?: { host: string; port: number }
}

export async function createSocksServer(
  t: Pick<TestContext, 'after'>,
  { host, port = 1080, from, login, instead }: SocksOptions,
): Promise<SocksServer> {
  const sockets = new Set<Socket>()
  const targets: string[] = []
  const socks = { host, port, targets, refuseWith: null as number | null, close }

  const server = createServer({ noDelay: true }, (client) => {
    note(client)
    serve(client).catch(() => client.destroy())
  })

  function note(socket: Socket): void {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
  }

  async function serve(client: Socket): Promise<void> {
    const read = reader(client)
    const [, count = 0] = await read(2)
    const methods = [...(await read(count))]
    const method = login === undefined ? 0 : 2
    client.write(Buffer.from([5, methods.includes(method) ? method : 0xff]))
    if (login !== undefined && !(await isLoggedIn(client, read))) return void client.end()
    const [, , , type] = await read(4)
    const address = type === 1 ? [...(await read(4))].join('.') : ipv6(await read(16))
    const targetPort = (await read(2)).readUInt16BE()
    targets.push(`${address}:${targetPort}`)
    if (socks.refuseWith !== null) return void client.end(reply(socks.refuseWith))
    const asked = { host: address, port: targetPort }
    const target = connect({ ...asked, ...instead, localAddress: from, noDelay: true })
    note(target)
    target.once('error', () => client.end(reply(5)))
    target.once('connect', () => {
      client.write(reply(0))
      client.pipe(target).pipe(client)
      client.once('close', () => target.destroy())
      target.once('close', () => client.destroy())
    })
  }

  async function isLoggedIn(client: Socket, read: Reader): Promise<boolean> {
    const [, length = 0] = await read(2)
    const user = String(await read(length))
    const password = String(await read((await read(1))[0] ?? 0))
    const isRight = user === login?.user && password === login.password
    client.write(Buffer.from([1, isRight ? 0 : 1]))
    return isRight
  }

  async function close(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }

  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  t.after(close)
  return socks
}

/** The bound address in it means nothing to anybody. */
const reply = (status: number) => Buffer.from([5, status, 0, 1, 0, 0, 0, 0, 0, 0])

const ipv6 = (bytes: Buffer) =>
  Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16)).join(':')

type Reader = (length: number) => Promise<Buffer>

function reader(socket: Socket): Reader {
  return async (length) => {
    for (;;) {
      const bytes: Buffer | null = length === 0 ? Buffer.alloc(0) : socket.read(length)
      if (bytes !== null) return bytes
      if (socket.readableEnded || socket.destroyed) throw new Error('closed')
      await new Promise<void>((resolve) => socket.once('readable', resolve).once('close', () => resolve()))
    }
  }
}
