/** The records of a domain as zone-file text (RFC 1035 §5), to be pasted or imported at a DNS provider. Pure. */

import { quotedText } from '../../../protocols/dns/presentation.ts'
import { DMARC_REPORTS_LOCAL, tlsReportAdvice } from '../names/report-addresses.ts'
import type { RecordState } from '../view.ts'
import type { DnsTargets } from './dns-records.ts'
import { valueToPublish } from './dns-records.ts'
import { DMARC_ADVICE } from './lookups.ts'

const TTL_SECONDS = 3600

const HEADINGS: Record<string, string> = {
  dkim: 'DKIM: public keys for the signatures',
  spf: 'SPF: one record only; what stood there before is kept in it',
  tracking: 'Opens, clicks and unsubscribe links',
  mx: 'Receiving mail here. Leave these out if the domain receives its mail elsewhere',
  'return-path-spf': 'SPF of the return path',
  'return-path-mx': 'Bounces come back to the return path',
  'mta-sts-host': 'MTA-STS: where senders fetch the policy, and the id that tells them of a new one',
  'mta-sts': 'MTA-STS: where senders fetch the policy, and the id that tells them of a new one',
}

/** All names are absolute, so the text fits any $ORIGIN. Ends with a newline. */
export function zoneText(
  name: string,
  states: readonly RecordState[],
  targets: DnsTargets,
  publicUrl: string,
): string {
  const lines = [`; DNS records of ${name}`]
  let heading = ''
  for (const { wanted, check } of states) {
    const next = HEADINGS[wanted.purpose] ?? ''
    if (next !== heading) lines.push('', `; ${next}`)
    heading = next
    const value = valueToPublish(wanted, check?.found ?? [], targets.spfIncludeHost)
    lines.push(zoneLine(wanted.name, wanted.type, value, wanted.priority))
  }
  lines.push(
    '',
    '; DMARC: only if there is no record yet; begin with p=none',
    `; and, if the domain receives its mail here, add rua=mailto:${DMARC_REPORTS_LOCAL}@${name} for reports`,
    zoneLine(`_dmarc.${name}`, 'TXT', DMARC_ADVICE),
    '',
    '; Reports about TLS: only if the domain receives its mail here',
    `; ${zoneLine(`_smtp._tls.${name}`, 'TXT', tlsReportAdvice(name, publicUrl))}`,
  )
  return `${lines.join('\n')}\n`
}

function zoneLine(name: string, type: string, value: string, priority?: number): string {
  const head = `${name}.\t${TTL_SECONDS}\tIN\t${type}\t`
  if (type === 'TXT') return head + quotedText(value)
  if (type === 'MX') return `${head}${priority ?? 0} ${value}.`
  return type === 'CNAME' ? `${head}${value}.` : head + value
}
