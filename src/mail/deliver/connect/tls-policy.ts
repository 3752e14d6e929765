/**
 * The TLS rules of one connection, from the sender's policy (messages.md rule 36) and the receiver's.
 *
 * 1. DANE: validated TLSA records of the MX host decide (RFC 7672 §2.2); if their look-up fails where records may
 *    exist, the host is skipped, since an attacker could have caused that.
 * 2. Else MTA-STS: in `enforce`, hosts that the policy does not name are skipped, and the certificate must verify; in
 *    `testing` the same is only reported (RFC 8461 §5).
 * 3. A receiver's policy can demand more than the sender's, never less: skip-verification does not switch it off.
 * 4. A relay with a password is the operator's: neither the sender nor the recipient decides about the connection.
 * 5. TLS reports are about failures of these rules, and are sent under none of them.
 */

import { classifyAddress } from '../../../base/net/ip.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { MailHost } from '../../../protocols/dns/mx.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { StsPolicies } from '../../../protocols/mta-sts/policies.ts'
import { namesHost } from '../../../protocols/mta-sts/policy.ts'
import type { TlsEvidence } from '../../../protocols/smtp/tls-evidence.ts'
import type { TlsPolicy } from '../contract.ts'
import { judgeByTlsa, usableRecords } from './dane.ts'

export interface HostTls {
  required: boolean
  verify: boolean
  /** In place of the PKIX rules. */
  judge: ((evidence: TlsEvidence) => string | null) | null
  /** Where the rules come from; `sts-testing` adds none and is reported. */
  policy: 'none' | 'tlsa' | 'sts' | 'sts-testing'
  /** Connections are shared only under rules with equal keys. */
  key: string
}

export type HostTlsResult =
  | HostTls
  | {
      refused: string
      policy: 'tlsa' | 'sts'
      result: string
      /** Why DNS could not be queried: a fault of this machine. */
      localFault?: string
    }

export interface TlsPolicyParts {
  resolver: Resolver
  policies: StsPolicies | null
  port: number
  clock: Clock
}

/** The sender's policy alone. */
export function senderTls({ required, verify }: TlsPolicy): HostTls {
  return { required, verify, judge: null, policy: 'none', key: `${required} ${verify}` }
}

/**
 * For a relay that gets a password: TLS whose certificate is for `host`, unless the operator accepts any certificate. A
 * loopback address may do without TLS, never with a certificate that does not verify (protocols/smtp/client.ts).
 */
export function relayTls(host: string, { allowUnverified = false }: { allowUnverified?: boolean }): HostTls {
  const isLocal = host === 'localhost' || classifyAddress(host) === 'loopback'
  return {
    required: !isLocal,
    verify: !isLocal && !allowUnverified,
    judge: null,
    policy: 'none',
    key: 'relay',
  }
}

/**
 * For TLS reports, whatever anybody's policy. The key is their own: sessions are reported when they are opened, and so
 * other mail may not use one that was opened for a report, nor a report one that was opened for other mail.
 */
export const REPORT_TLS: HostTls = {
  required: false,
  verify: false,
  judge: null,
  policy: 'none',
  key: 'report',
}

/** The rules for connecting to `host` with mail for `domain`, or why it must not be used. */
export async function hostTls(
  parts: TlsPolicyParts,
  domain: string,
  host: MailHost,
  senderPolicy: TlsPolicy,
): Promise<HostTlsResult> {
  const dane = host.authenticated ? await daneOf(parts, host, senderPolicy) : null
  if (dane) return dane
  const found = await parts.policies?.of(domain)
  if (!found) return senderTls(senderPolicy)
  const named = namesHost(found.policy, host.exchange)
  if (found.policy.mode === 'testing') return { ...senderTls(senderPolicy), policy: 'sts-testing' }
  if (!named) {
    return {
      refused: `the MTA-STS policy of ${domain} does not name ${host.exchange}`,
      policy: 'sts',
      result: 'validation-failure',
    }
  }
  return { required: true, verify: true, judge: null, policy: 'sts', key: 'sts' }
}

/** TLSA records are looked up under the name that the host's CNAMEs lead to, or its own (RFC 7672 §2.2.3). */
async function daneOf(
  { resolver, port, clock }: TlsPolicyParts,
  host: MailHost,
  senderPolicy: TlsPolicy,
): Promise<HostTlsResult | null> {
  const names = [...new Set([host.canonicalName, host.exchange])]
  for (const name of names) {
    const answer = await resolver.query(`_${port}._tcp.${name}`, 'TLSA')
    if (answer.kind === 'nodata' || answer.kind === 'nxdomain') continue
    if (answer.kind !== 'records') {
      return {
        refused: `no TLSA answer for ${name}: ${answer.problem}`,
        policy: 'tlsa',
        result: 'dane-required',
        ...(answer.localFault !== undefined && { localFault: answer.localFault }),
      }
    }
    if (!answer.authenticated) continue
    const usable = usableRecords(answer.records)
    if (usable.length === 0)
      return {
        required: true,
        verify: senderPolicy.required && senderPolicy.verify,
        judge: null,
        policy: 'tlsa',
        key: 'tls',
      }
    return {
      required: true,
      verify: true,
      judge: (evidence) => judgeByTlsa(usable, evidence, clock.now()),
      policy: 'tlsa',
      key: `tlsa ${name}`,
    }
  }
  return null
}
