/** What is known of a domain's records for SPF, DKIM, DMARC and BIMI. */
import type { Core } from '../../core.ts'
import { readDnsState } from '../../sending/domains/dns/verification.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { recordStates } from '../../sending/domains/view.ts'
import type { SenderFacts } from './rules.ts'

/** By the last checks in DNS; looks nothing up. */
export async function readAuthentication(
  { store, config }: Pick<Core, 'store' | 'config'>,
  domain: Domain,
): Promise<Pick<SenderFacts, 'spf' | 'dkim' | 'dmarc'>> {
  const dns = await readDnsState(store, domain)
  const states = recordStates(domain, dns, config.dnsTargets)
  const valid = (purpose: string): boolean | null => {
    const some = states.filter(({ wanted }) => wanted.purpose === purpose)
    const checked = some.filter(({ check }) => check?.answered)
    // A key that does not sign says nothing for the mail.
    return checked.length === 0
      ? null
      : checked.some(({ check, isActive }) => isActive && check?.valid === true)
  }
  const dmarc = dns.checks.find(({ purpose }) => purpose === 'dmarc')
  return {
    spf: valid('spf'),
    dkim: valid('dkim'),
    dmarc: {
      valid: dmarc?.answered ? dmarc.valid : null,
      record: dmarc?.found.find((text) => text.startsWith('v=DMARC1')) ?? '',
      sentence: dmarc?.sentence ?? '',
    },
  }
}

/** TXT at `default._bimi`; null: no answer. */
export async function readBimi(
  { resolver }: Pick<Core, 'resolver'>,
  domainName: string,
): Promise<readonly string[] | null> {
  const answer = await resolver.query(`default._bimi.${domainName}`, 'TXT')
  return ['records', 'nodata', 'nxdomain'].includes(answer.kind) ? answer.records : null
}
