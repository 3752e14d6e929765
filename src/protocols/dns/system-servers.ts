import { getServers } from 'node:dns'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { ServerAddress } from './query-transport.ts'

const DNS_PORT = 53
const SERVERS_MAX = 3 // like the C library, resolv.conf(5)

/** The servers configured on this host: those of resolv.conf, else those that the runtime knows. */
export function systemServers(path = '/etc/resolv.conf'): ServerAddress[] {
  let text = ''
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    // Not every system has the file; the runtime then finds the servers in its own way.
  }
  const servers = parseResolvConf(text)
  return servers.length > 0 ? servers : getServers().map(parseServer).slice(0, SERVERS_MAX)
}

/** The `nameserver` lines of a resolv.conf. */
export function parseResolvConf(text: string): ServerAddress[] {
  return text
    .split('\n')
    .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
    .filter((host) => isIP(host) !== 0)
    .slice(0, SERVERS_MAX)
    .map((host) => ({ host, port: DNS_PORT }))
}

/** "192.0.2.1", "192.0.2.1:5353" or "[2001:db8::1]:5353", as `node:dns` writes them. */
function parseServer(text: string): ServerAddress {
  const bracketed = /^\[(.+)\]:(\d+)$/.exec(text) ?? /^([^:]+):(\d+)$/.exec(text)
  return { host: bracketed?.[1] ?? text, port: Number(bracketed?.[2] ?? DNS_PORT) }
}
