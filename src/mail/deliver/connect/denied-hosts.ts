/** The mail hosts that get no mail (`SENDWRIGHT_MX_DENY`). */
import { anyCidrContains, parseCidr } from '../../../base/net/ip.ts'
import type { MailHostDenial } from '../../../protocols/dns/mx.ts'
import { compilePattern } from '../../../protocols/smtp/reply-pattern.ts'

/** `entries`: networks, and names in lower case in which `*` stands for any characters and `?` for one. Undefined: no host is denied. */
export function deniedHosts(entries: readonly string[]): MailHostDenial | undefined {
  if (entries.length === 0) return undefined
  const networks = entries.flatMap((entry) => parseCidr(entry) ?? [])
  const names = entries.filter((entry) => parseCidr(entry) === null).map(patternOf)
  return {
    name: (exchange) => names.some((pattern) => pattern.isIn(exchange)),
    address: (address) => anyCidrContains(networks, address),
  }
}

const patternOf = (name: string) =>
  compilePattern(`^${name.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.')}$`)
