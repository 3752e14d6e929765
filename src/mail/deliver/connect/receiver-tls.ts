/**
 * The TLS rules of a receiver, over those of the sender (messages.md rule 36), for one connection.
 *
 * 1. DANE (RFC 7672): validated TLSA records of the MX host decide (§2.2); if their look-up fails where records may
 *    exist, the host is skipped, since an attacker could have caused that. Usages 0 and 1 are not used in SMTP (§3.1.3);
 *    if no record is usable, TLS is still required, but there is nothing to verify (§2.2).
 * 2. Else MTA-STS: in `enforce`, hosts that the policy does not name are skipped, and the certificate must verify; in
 *    `testing` the same is only reported (RFC 8461 §5). Policies are kept in a table.
 * 3. With REQUIRETLS the name of the host must be proven by one of the two, or be the domain itself (RFC 8689 §4.2.1).
 * 4. A receiver's policy can demand more than the sender's, never less: skip-verification does not switch it off.
 */
import { createHash, type X509Certificate } from 'node:crypto'
import { anyCidrContains, type Cidr, isPublicAddress } from '../../../base/net/ip.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { Store } from '../../../platform/store/store.ts'
import type { MailHost } from '../../../protocols/dns/mx.ts'
import type { TlsaData } from '../../../protocols/dns/packet.ts'
import { isDefinite, type Resolver } from '../../../protocols/dns/resolver.ts'
import { fetchPolicy } from '../../../protocols/mta-sts/fetch.ts'
import { createStsPolicies, type StsPolicies } from '../../../protocols/mta-sts/policies.ts'
import { namesHost } from '../../../protocols/mta-sts/policy.ts'
import type { TlsEvidence } from '../../../protocols/smtp/tls-evidence.ts'

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
      policy: 'tlsa' | 'sts' | 'none'
      result: string
      /** It may pass: DNS gave no answer. */
      isTemporary?: true
      /** Why DNS could not be queried: a fault of this machine. */
      localFault?: string
    }

/** Where the receiver's rules are looked up. */
interface PolicySources {
  resolver: Resolver
  /** Null: MTA-STS is not used. */
  policies: StsPolicies | null
  port: number
}

/**
 * The rules for connecting to `host` with mail for `domain`, or why it must not be used. `sender`: those of the sender.
 * `isOnward`: REQUIRETLS. Its connections are its own, so that all of them are to servers that keep it.
 */
export async function receiverTls(
  sources: PolicySources,
  clock: Clock,
  domain: string,
  host: MailHost,
  sender: HostTls,
  isOnward: boolean,
): Promise<HostTlsResult> {
  const own = (key: string) => (isOnward ? `requiretls ${key}` : key)
  const dane = host.authenticated ? await daneOf(sources, clock, host, sender) : null
  if (dane) return 'refused' in dane ? dane : { ...dane, key: own(dane.key) }
  const found = await sources.policies?.of(domain)
  const isNamed = found ? namesHost(found.policy, host.exchange) : false
  if (isOnward && !isNamed && !host.authenticated && host.exchange.toLowerCase() !== domain) {
    const refused = `neither DNSSEC nor MTA-STS proves that ${host.exchange} receives mail for ${domain}`
    return { refused, policy: 'none', result: 'validation-failure' }
  }
  if (!found) return sender
  if (found.policy.mode === 'testing') return { ...sender, policy: 'sts-testing' }
  if (!isNamed) {
    const refused = `the MTA-STS policy of ${domain} does not name ${host.exchange}`
    return { refused, policy: 'sts', result: 'validation-failure' }
  }
  return { required: true, verify: true, judge: null, policy: 'sts', key: own('sts') }
}

/** TLSA records are looked up under the name that the host's CNAMEs lead to, or its own (RFC 7672 §2.2.3). */
async function daneOf(
  { resolver, port }: PolicySources,
  clock: Clock,
  host: MailHost,
  sender: HostTls,
): Promise<HostTlsResult | null> {
  for (const name of new Set([host.canonicalName, host.exchange])) {
    const answer = await resolver.query(`_${port}._tcp.${name}`, 'TLSA')
    if (answer.kind === 'nodata' || answer.kind === 'nxdomain') continue
    if (answer.kind !== 'records') {
      return {
        refused: `no TLSA answer for ${name}: ${answer.problem}`,
        policy: 'tlsa',
        result: 'dane-required',
        isTemporary: true,
        ...(answer.localFault !== undefined && { localFault: answer.localFault }),
      }
    }
    if (!answer.authenticated) continue
    const usable = usableRecords(answer.records)
    const rules = { required: true, policy: 'tlsa' } as const
    if (usable.length === 0) {
      const verify = sender.required && sender.verify
      return { ...rules, verify, judge: null, key: `tls ${verify}` }
    }
    const judge = (evidence: TlsEvidence) => judgeByTlsa(usable, evidence, clock.now())
    return { ...rules, verify: true, judge, key: `tlsa ${name}` }
  }
  return null
}

const DANE_TA = 2
const DANE_EE = 3

/** The records that can be matched. */
function usableRecords(records: readonly TlsaData[]): TlsaData[] {
  return records.filter(
    ({ usage, selector, matchingType }) =>
      (usage === DANE_TA || usage === DANE_EE) && selector <= 1 && matchingType <= 2,
  )
}

/** Null: the evidence matches one of the records; else why not. `now` in Unix milliseconds. */
function judgeByTlsa(records: readonly TlsaData[], evidence: TlsEvidence, now: number): string | null {
  const [leaf] = evidence.chain
  if (!leaf) return 'the server sent no certificate'
  // Neither names nor dates matter for an end entity that DNS itself names (§3.1.1).
  if (records.some((record) => record.usage === DANE_EE && matches(record, leaf))) return null
  const anchors = records.filter(({ usage }) => usage === DANE_TA)
  const depth = evidence.chain.findIndex((certificate) =>
    anchors.some((anchor) => matches(anchor, certificate)),
  )
  if (depth < 0) return 'no certificate fits the TLSA records'
  return evidence.nameError ?? chainFault(evidence.chain.slice(0, depth + 1), now)
}

function matches({ selector, matchingType, certificate: wanted }: TlsaData, found: X509Certificate): boolean {
  const bytes = selector === 0 ? found.raw : found.publicKey.export({ type: 'spki', format: 'der' })
  if (matchingType === 0) return bytes.equals(wanted)
  return createHash(matchingType === 1 ? 'sha256' : 'sha512')
    .update(bytes)
    .digest()
    .equals(wanted)
}

/** Each certificate signed by the next one, up to the trust anchor, and all of them valid now. */
function chainFault(chain: readonly X509Certificate[], now: number): string | null {
  for (const [index, certificate] of chain.entries()) {
    if (now < Date.parse(certificate.validFrom) || now > Date.parse(certificate.validTo))
      return 'a certificate is not valid at this time'
    const issuer = chain[index + 1]
    if (issuer && !(certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)))
      return 'the certificates do not sign each other'
  }
  return null
}

const KEEP_POLICY = `INSERT INTO mta_sts_policies (domain, policy_id, policy_text, expires_at) VALUES (?, ?, ?, ?)
  ON CONFLICT (domain) DO UPDATE SET policy_id = excluded.policy_id, policy_text = excluded.policy_text,
    expires_at = excluded.expires_at`

/** MTA-STS policies by our own resolver and HTTPS client, kept in a table. */
export function createStoredPolicies(parts: {
  store: Store
  resolver: Resolver
  clock: Clock
  allow: readonly Cidr[]
}): StsPolicies {
  const { store, resolver, clock, allow } = parts
  const mayReach = (address: string) => isPublicAddress(address) || anyCidrContains(allow, address)

  async function addressesOf(host: string): Promise<string[]> {
    const answers = await Promise.all([resolver.query(host, 'AAAA'), resolver.query(host, 'A')])
    return answers.flatMap(({ records }) => records.filter(mayReach))
  }
  return createStsPolicies({
    clock,
    async txt(name) {
      const answer = await resolver.query(name, 'TXT')
      return isDefinite(answer) ? answer.records : null
    },
    fetch: (domain) => fetchPolicy(domain, { addressesOf }),
    async known(domain) {
      const row = await store.db
        .selectFrom('mta_sts_policies')
        .selectAll()
        .where('domain', '=', domain)
        .executeTakeFirst()
      return row
        ? { domain, id: row.policy_id, text: row.policy_text, expiresAt: Number(row.expires_at) }
        : null
    },
    async keep({ domain, id, text, expiresAt }) {
      await store.commit([{ sql: KEEP_POLICY, values: [domain, id, text, expiresAt] }])
    },
  })
}
