/**
 * Faults of our own machine that look like a peer's: a connection that never left, a file that could not be opened. They
 * end by themselves or by the operator's action, so the affected work waits and nothing is counted against a peer.
 */
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

/** Resources of a process or machine. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE: 'the limit of open files of this process is reached',
  ENFILE: 'this machine has no more open files',
  ENOBUFS: 'this machine has no more network buffers',
  ENOMEM: 'this machine has no more memory',
}

/** A proxy that connections leave through cannot be used; the message is a sentence without its full stop. */
export class ProxyDown extends Error {
  override name = 'ProxyDown'
}

/** Depth up to which causes are followed. */
const CAUSES_MAX = 8

type SystemError = Partial<Pick<NodeJS.ErrnoException, 'code' | 'syscall'>> & {
  address?: string
  cause?: unknown
  errors?: unknown
}

/** What the machine is short of, as a sentence without its full stop; null: the error is no shortage. */
export function shortageOf(error: unknown): string | null {
  let current: unknown = error
  for (let depth = 0; depth < CAUSES_MAX && typeof current === 'object' && current !== null; depth++) {
    const { code, cause, errors } = current as SystemError
    const shortage = code === undefined ? undefined : SHORTAGES[code]
    if (shortage !== undefined) return `${shortage} (${code})`
    current = cause ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return null
}

/**
 * Why a connection failed before anything left this machine, other than by a shortage: its own address is missing or
 * used up, its firewall forbids it, its network is down, its proxy does not work; null: the fault is the peer's, or of the route to
 * it. The sentence names no peer.
 */
export function connectionFaultOf(
  error: unknown,
  addresses: () => LocalAddresses = localAddresses,
): string | null {
  if (error instanceof ProxyDown) return error.message
  const { code, syscall, address = '' } = error as SystemError
  const isBind = syscall === 'bind'
  switch (code) {
    case 'EADDRINUSE':
      return isBind ? `the source address ${address} has no free port (${code})` : null
    case 'EADDRNOTAVAIL':
      if (isBind) return `this machine does not have the source address ${address} (${code})`
      // Without an address of the family, the family is missing; with one, the ports are used up.
      return addresses().some(({ family }) => family === isIP(address))
        ? `this machine has no free port to connect from (${code})`
        : null
    case 'EACCES':
    case 'EPERM':
      return `this machine does not allow the connection, maybe by its firewall (${code})`
    case 'ENETDOWN':
      return `the network of this machine is down (${code})`
    case 'ENETUNREACH':
      // With an address, only the route to this peer may be missing: usually IPv6.
      return addresses().some(({ internal }) => !internal) ? null : `this machine has no network (${code})`
    default:
      return null
  }
}

type LocalAddresses = readonly { family: number; internal: boolean }[]

function localAddresses(): LocalAddresses {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return all.map(({ family, internal }) => ({ family: family === 'IPv6' ? 6 : 4, internal }))
}
