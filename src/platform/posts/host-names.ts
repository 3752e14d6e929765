/**
 * Resolves host names for the outgoing HTTP client: the hosts file first, then our own resolver. Not the system's
 * `getaddrinfo`: it occupies a thread of libuv's pool, which signing and file access use too, so names with slow servers
 * could delay mail.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Clock } from '../../base/time/clock.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'

const HOSTS_FILE = '/etc/hosts'
/** How long the parsed hosts file is cached. */
const HOSTS_MS = 30_000

/** All addresses of a name; empty if it has none or cannot be resolved now. */
export function createHostNames(
  resolver: Pick<Resolver, 'query'>,
  clock: Clock,
): (host: string) => Promise<string[]> {
  let hosts = new Map<string, string[]>()
  let readAt = Number.NEGATIVE_INFINITY
  return async (host) => {
    const name = host.toLowerCase()
    // RFC 6761 §6.3: never resolved through the network.
    if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1']
    if (clock.monotonic() - readAt > HOSTS_MS) {
      hosts = parseHosts(hostsText())
      readAt = clock.monotonic()
    }
    const local = hosts.get(name)
    if (local) return local
    const [four, six] = await Promise.all([resolver.query(name, 'A'), resolver.query(name, 'AAAA')])
    return [...four.records, ...six.records]
  }
}

function hostsText(): string {
  try {
    return readFileSync(HOSTS_FILE, 'utf8')
  } catch {
    return '' // not every system has one
  }
}

/** hosts(5): an address, then its names; `#` begins a comment. */
function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = (line.split('#', 1)[0] as string).trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names.map((word) => word.toLowerCase())) {
      hosts.set(name, [...(hosts.get(name) ?? []), address])
    }
  }
  return hosts
}
