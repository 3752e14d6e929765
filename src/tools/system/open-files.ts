/**
 * The limit of open files: every connection, database file and attachment being read takes one. Node raises it to
 * the hard limit at start, so that is the one that counts.
 */
import { readdir, readFile } from 'node:fs/promises'
import { IDLE_CONNECTIONS_MAX } from '../../mail/deliver/connect/connection-pool.ts'
import { ATTEMPTS_AT_ONCE_MAX } from '../../mail/deliver/lanes/holding.ts'
import type { Config } from '../../platform/config/config.ts'
import { HTTP_CONNECTIONS_MAX } from '../../platform/http/listening/connection.ts'
import { DNS_SOCKETS_MAX } from '../../protocols/dns/resolver.ts'
import { SMTP_CONNECTIONS_MAX } from '../../receiving/sessions/smtp-listener.ts'

/** Node itself, database, log, threads, listeners: about 60 after a start; plus files being read and webhooks. */
const OTHERS = 500

type OpenFilesConfig = Pick<Config, 'delivery' | 'relayConnections' | 'sourceAddresses' | 'httpsPort'>

/** Open files with every connection that the settings allow. */
export function openFilesNeeded(config: OpenFilesConfig): number {
  const http = HTTP_CONNECTIONS_MAX * (config.httpsPort === null ? 1 : 2)
  const toRelay = config.relayConnections * Math.max(1, config.sourceAddresses.length)
  const delivery =
    config.delivery.kind === 'direct'
      ? ATTEMPTS_AT_ONCE_MAX + IDLE_CONNECTIONS_MAX + DNS_SOCKETS_MAX
      : toRelay
  return http + SMTP_CONNECTIONS_MAX + delivery + OTHERS
}

/**
 * Limit of this process and number of its open files; null if the system does not report it (Linux does), or has no
 * limit.
 */
export async function readOpenFiles(): Promise<{ limit: number; open: number } | null> {
  try {
    const limits = await readFile('/proc/self/limits', 'utf8')
    const limit = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1])
    return Number.isNaN(limit) ? null : { limit, open: (await readdir('/proc/self/fd')).length }
  } catch {
    return null
  }
}

/** What to do about a limit that is too low, for the operator; null: it is high enough. */
export function openFilesFault(limit: number, needed: number): string | null {
  if (limit >= needed) return null
  return `The limit of open files is ${limit}; all connections that the settings allow take ${needed}. Beyond the limit connections are refused and deliveries wait. Set it to ${needed} (LimitNOFILE= in a systemd unit, --ulimit nofile= in Docker, ulimit -n in a shell).`
}
